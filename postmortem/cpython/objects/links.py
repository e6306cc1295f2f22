"""Linked lists of the target, followed to their end or abandoned if damaged."""

from __future__ import annotations

from typing import Callable, Iterator

from .builtins import NotThat


def linked(first: int, following: Callable[[int], int], most: int) -> Iterator[int]:
    """Yield the nodes from ``first`` on; ``following`` returns the next address, 0 after the last.

    Brent's algorithm: compare with one earlier node, which moves up at every power of two; needs constant memory.

    Raises: NotThat if a node repeats, or beyond ``most`` nodes.
    """
    mark, count, next_mark = 0, 0, 1
    node = first
    while node:
        if node == mark or count >= most:
            raise NotThat("a circular list" if node == mark else f"more than {most:,} entries in a list")
        if count == next_mark:
            mark, next_mark = node, next_mark * 2
        count += 1
        yield node
        node = following(node)
