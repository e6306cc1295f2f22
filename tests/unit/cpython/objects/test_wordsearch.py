"""Words in synthesised memory, and the allocations around places."""

from __future__ import annotations

import struct
from typing import List

import pytest

from postmortem.cpython.heap import allocations
from postmortem.cpython.heap.allocations import Allocations
from postmortem.cpython.objects import wordsearch
from postmortem.cpython.objects.builtins import NotThat
from postmortem.cpython.objects.wordsearch import OutOfTime, WordSearch, near
from postmortem.memory import Segments
from postmortem.timelimits import TimeLimit

BASE = 0x7F1234560000
FAR = 60.0


def search(memory: Segments, *sizes: int, seconds: float = FAR) -> WordSearch:
    ranges, start = [], BASE
    for size in sizes:
        ranges.append((start, start + size))
        start += size
    return WordSearch(memory, ranges, TimeLimit(seconds))


@pytest.mark.parametrize("word", [0x7F1234567890, 0x7F1234567800, 0x7F1234560000, 0x55AA00000000, 0x1000])
@pytest.mark.parametrize("others", [0, 20], ids=["alone", "among many"])
def test_aligned_places_are_found_and_no_others(word: int, others: int) -> None:
    """Whatever bytes of the word are zero, and whether it is looked for alone or with many: all places at multiples of
    8, the first and the last word of the memory among them, none that only begins alike, and none at an odd place."""
    memory = Segments({BASE: b"\0" * 8192})
    for offset in (0, 64, 4096, 8184):
        memory.put_words(BASE + offset, word)
    memory.put(BASE + 204, struct.pack("<Q", word))
    memory.put_words(BASE + 512, word | 1 << 48, word | 1)
    words = [word, *range(0x7F0000000010, 0x7F0000000010 + 16 * others, 16)]
    found = search(memory, 8192).places(words)
    assert found[word] == [BASE, BASE + 64, BASE + 4096, BASE + 8184]
    assert all(not found[other] for other in words[1:])


@pytest.mark.parametrize("word", [-8, 1 << 64])
def test_what_is_no_word_stands_nowhere(word: int) -> None:
    """An address that was computed from damaged memory may be more, or less, than a word can hold."""
    found = search(Segments({BASE: b"\0" * 4096}), 4096)
    assert found.places([word, *range(BASE, BASE + 160, 8)])[word] == []
    assert found.some(word, 3) == []


def test_missing_pages_are_passed_over() -> None:
    """A page that is not there hides only itself."""
    word = 0x7F1234567890
    memory = Segments({BASE: struct.pack("<Q", word) * 512, BASE + 8192: struct.pack("<Q", word) * 512})
    assert len(search(memory, 12288).places([word])[word]) == 1024


def test_a_search_ends_when_its_time_is_up() -> None:
    """It is an exception then, a kind of NotThat, not an empty answer."""
    with pytest.raises(OutOfTime):
        search(Segments({BASE: b"\0" * 4096}), 4096, seconds=-1).places([1 << 40])


def test_some_places_of_a_word_will_do() -> None:
    """As many as were asked for, the first ones; all of them where there are fewer; aligned ones only."""
    word = 0x7F1234567890
    memory = Segments({BASE: b"\0" * 8192})
    memory.put_words(BASE + 8, word, word, word)
    memory.put(BASE + 204, struct.pack("<Q", word))
    assert search(memory, 8192).some(word, 2) == [BASE + 8, BASE + 16]
    assert search(memory, 8192).some(word, 50) == [BASE + 8, BASE + 16, BASE + 24]
    assert search(memory, 8192).some(word + 8, 50) == []


def test_words_that_stand_everywhere_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has more places than are of interest has no answer, the others keep theirs; too many places of all words
    together end the search."""
    monkeypatch.setattr(wordsearch, "MAX_PLACES", 100)
    everywhere, once = 0x7F1234567890, 0x7F1234567898
    memory = Segments({BASE: struct.pack("<Q", everywhere) * 511 + struct.pack("<Q", once)})
    for others in (0, 20):
        words = [everywhere, once, *range(0x1000, 0x1000 + 16 * others, 16)]
        found = search(memory, 4096).places(words)
        assert everywhere not in found and found[once] == [BASE + 4088]
    monkeypatch.setattr(wordsearch, "MAX_PLACES", 10_000)
    monkeypatch.setattr(wordsearch, "MAX_TOGETHER", 100)
    with pytest.raises(NotThat):
        search(memory, 4096).places([everywhere, once])


def test_what_is_found_in_time_is_kept() -> None:
    """Where some places will do, the end of the time is no failure: each word has its answer, though it be an empty one."""
    word = 0x7F1234567890
    memory = Segments({BASE: struct.pack("<Q", word) * 512})
    assert search(memory, 4096).places_in_time([word, word + 8]) == {
        word: list(range(BASE, BASE + 4096, 8)),
        word + 8: [],
    }
    assert search(memory, 4096, seconds=-1).places_in_time([word]) == {word: []}
    assert search(memory, 4096, seconds=-1).some(word, 5) == []


def test_what_lies_near_some_addresses() -> None:
    """Parts of the ranges within a megabyte or two, joined where they touch; nothing of a range that is far away."""
    mega = 1 << 20
    found = near([(BASE, BASE + 64 * mega), (BASE + 1024 * mega, BASE + 1025 * mega)], [BASE + 10 * mega])
    assert len(found) == 1 and found[0][0] <= BASE + 9 * mega and BASE + 11 * mega <= found[0][1] <= BASE + 13 * mega


def pool(version_bits: int, szidx: int) -> Segments:
    size = 1 << version_bits
    memory = Segments({BASE: b"\0" * size})
    memory.put(BASE, struct.pack("<I", 3))
    memory.put(BASE + 36, struct.pack("<I", szidx))
    memory.put(BASE + 44, struct.pack("<I", size - 16 * (szidx + 1)))
    return memory


@pytest.mark.parametrize(("version", "bits"), [((3, 8), 12), ((3, 9), 12), ((3, 10), 14), ((3, 14), 14)])
def test_a_block_of_a_pool_begins_where_its_size_says(version: tuple[int, int], bits: int) -> None:
    """48 bytes behind the pool's beginning lies the first block; all words up to the place may be a table's first."""
    memory = pool(bits, 3)  # blocks of 64 bytes
    place = BASE + 48 + 64 * 5 + 24
    block = Allocations(memory, version).block(place)
    assert block is not None and block.start == place - 24 and block.sure
    assert Allocations(memory, version).beginnings(place)[:4] == [place - 24, place - 16, place - 8, place]


def test_what_merely_looks_like_a_pool_rules_out_no_chunk() -> None:
    """A header whose last field does not fit: the place may be in a block, or in a chunk of malloc's."""
    memory = pool(14, 3)
    memory.put(BASE + 44, struct.pack("<I", 5))
    memory.put_words(BASE + 4096 + 8, 544 | 1)
    memory.put_words(BASE + 4096 + 544 + 8, 64 | 1)
    place = BASE + 4096 + 400
    told = Allocations(memory, (3, 12))
    block = told.block(place)
    assert block is not None and not block.sure
    assert {block.start, BASE + 4096 + 16} <= set(told.beginnings(place))


def test_a_chunk_begins_behind_its_size() -> None:
    """A place in the middle of malloc's chunk: its beginning is among those found when the next chunk says that it is in
    use, and not when it does not."""
    memory = Segments({BASE: b"\xff" * 16384})
    memory.put_words(BASE + 4096 + 8, 544 | 1)
    memory.put_words(BASE + 4096 + 544 + 8, 64 | 1)
    start, place = BASE + 4096 + 16, BASE + 4096 + 400
    assert start in Allocations(memory, (3, 8)).beginnings(place)
    memory.put_words(BASE + 4096 + 544 + 8, 64)
    assert start not in Allocations(memory, (3, 8)).beginnings(place)


def test_pages_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of pages is bounded, and answers stay the same."""
    monkeypatch.setattr(allocations, "_MOST_PAGES", 3)
    memory = Segments({BASE: bytes(1 << 18)})
    for page in range(64):
        memory.put_words(BASE + 4096 * page + 8, 544 | 1)
        memory.put_words(BASE + 4096 * page + 544 + 8, 64 | 1)
    told = Allocations(memory, (3, 8))
    for _ in range(2):
        assert all(BASE + 4096 * n + 16 in told.beginnings(BASE + 4096 * n + 400) for n in range(64))
        assert len(told._chunks) <= 3


def test_garbage_has_no_beginnings_without_end() -> None:
    """Any bytes around a place yield a bounded list, memory that is missing an empty one."""
    for filler in (b"\0", b"\xff", b"\x21"):
        found: List[int] = Allocations(Segments({BASE: filler * 65536}), (3, 12)).beginnings(BASE + 32768)
        assert len(found) <= 3 * 4096 + 64
    assert Allocations(Segments({}), (3, 12)).beginnings(BASE) == []


def test_a_block_of_musl_is_told_by_its_group() -> None:
    """The bytes before it say how far into its group it lies; the group leads to a record that leads back."""
    group, record, start = 0x10000, 0x50000, 0x10000 + 16 * 35
    memory = Segments({group: bytes(0x1000), record: bytes(64)})
    memory.put_words(group, record)
    memory.put_words(record, 0, 0, group)
    memory.put_words(start - 8, 34 << 48 | 1 << 40)
    place = start + 264
    assert start in Allocations(memory, (3, 11), on_musl=True).beginnings(place)
    assert start not in Allocations(memory, (3, 11)).beginnings(place)
    memory.put_words(start - 8, 1 << 40 | 1 << 32 | 34)  # the same offset in four bytes
    assert start in Allocations(memory, (3, 11), on_musl=True).beginnings(place)
    memory.put_words(record, 0, 0, group + 16)
    assert start not in Allocations(memory, (3, 11), on_musl=True).beginnings(place)
