"""Linked lists, sound and damaged."""

from __future__ import annotations

import itertools

import pytest

from postmortem.cpython.objects.builtins import NotThat
from postmortem.cpython.objects.links import linked


def test_a_list_is_followed_to_its_end() -> None:
    """Every node once, in order, up to the one that has no next; none of an empty list."""
    following = {1: 5, 5: 3, 3: 0}
    assert list(linked(1, following.__getitem__, 3)) == [1, 5, 3]
    assert list(linked(0, following.__getitem__, 3)) == []


@pytest.mark.parametrize(("length", "back"), [(1, 1), (2, 1), (2, 2), (5, 3), (1000, 1), (1000, 999), (1000, 1000)])
def test_a_list_that_leads_back_is_damaged(length: int, back: int) -> None:
    """Wherever it leads back to, and after a few rounds at most."""
    rounds = 0

    def following(node: int) -> int:
        nonlocal rounds
        rounds += 1
        return back if node == length else node + 1

    with pytest.raises(NotThat, match="a circular list"):
        list(linked(1, following, 1_000_000))
    assert rounds <= 4 * length + 4


def test_a_list_without_end_is_given_up() -> None:
    """What comes before the bound is not lost on who looks at it meanwhile."""
    endless = linked(1, lambda node: node + 1, 100)
    assert list(itertools.islice(endless, 100)) == list(range(1, 101))
    with pytest.raises(NotThat, match="more than 100"):
        next(endless)
