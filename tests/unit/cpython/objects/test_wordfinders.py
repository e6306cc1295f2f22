"""Many words in pieces of memory: each finder gives the same answers."""

from __future__ import annotations

import random
import struct
import sys
from typing import List, Tuple

import pytest

from postmortem.cpython.objects.wordfinders import ArrayFinder, WordFinder
from postmortem.extract.process.fastwords import NumpyFinder, best_means


@pytest.fixture(params=["array", "numpy"])
def finder(request: pytest.FixtureRequest) -> WordFinder:
    if request.param == "array":
        return ArrayFinder()
    return NumpyFinder(pytest.importorskip("numpy"))


def naive(data: bytes, words: List[int]) -> List[Tuple[int, int]]:
    wanted = set(words)
    found = ((at, struct.unpack_from("<Q", data, at)[0]) for at in range(0, len(data) - 7, 8))
    return [(at, word) for at, word in found if word in wanted]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("many", [1, 20, 3000])
def test_all_places_are_found_in_order(finder: WordFinder, seed: int, many: int) -> None:
    """Equal answers for words in few regions and in many, the smallest and the largest among them, in pieces of any length."""
    chance = random.Random(seed)
    base = [0x7F0000000000, 0x55550000, 1 << 63, 0][: 1 + seed % 4]
    words = sorted({chance.choice(base) + 8 * chance.randrange(1 << 16) for _ in range(many)} | {0, (1 << 64) - 1})
    values = [chance.choice(words) if not chance.randrange(40) else chance.getrandbits(64) for _ in range(9000)]
    values[0], values[-1] = words[0], words[-1]
    data = struct.pack(f"<{len(values)}Q", *values)
    search = finder.searching(words)
    for size in (len(data), len(data) - 3, 4096, 8, 7, 0):
        assert list(search(data[:size])) == naive(data[:size], words)


def test_zeros_are_passed_over(finder: WordFinder) -> None:
    """Most memory is zero; it is a word like any other, but not confused with one."""
    search = finder.searching(range(0x7F0000000000, 0x7F0000100000, 16))
    assert list(search(bytes(1 << 20))) == []
    assert list(finder.searching([0])(bytes(24))) == [(0, 0), (8, 0), (16, 0)]


def test_no_words_are_nowhere(finder: WordFinder) -> None:
    """Nothing is sought, nothing is found."""
    assert list(finder.searching([])(bytes(64))) == []


def test_without_numpy_there_is_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that lacks it, or has a broken one, is slower and no worse."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    means = best_means(1 << 30)
    assert means.lacks_numpy and not means.is_fast and isinstance(means.finder, ArrayFinder)


def test_little_memory_is_not_worth_an_import() -> None:
    """Importing numpy takes longer than searching a few megabytes without; nothing is lacking then."""
    means = best_means(1 << 20)
    assert not means.lacks_numpy and isinstance(means.finder, ArrayFinder)
