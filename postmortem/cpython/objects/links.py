"""Linked lists of the target: followed to their end, or given up when they are damaged."""

from __future__ import annotations

from typing import Callable, Iterator

from .builtins import NotThat


def linked(first: int, following: Callable[[int], int], most: int) -> Iterator[int]:
    """The nodes from ``first`` on; ``following`` gives the next one's address, 0 behind the last.

    Raises NotThat when it comes back to a node it had, or has more than ``most`` nodes. Brent's algorithm: compares with
    one earlier node, which moves up at every power of two, so that nothing is kept of a million of them.
    """
    mark, count, next_mark = 0, 0, 1
    node = first
    while node:
        if node == mark or count >= most:
            raise NotThat("a list that leads back into itself" if node == mark else f"more than {most:,} in a list")
        if count == next_mark:
            mark, next_mark = node, next_mark * 2
        count += 1
        yield node
        node = following(node)
