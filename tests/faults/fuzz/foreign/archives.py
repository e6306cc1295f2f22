"""Bundles as zip archives, written field by field so that each may lie.

Source: PKWARE's APPNOTE.TXT 6.3.10: 4.3.7 local file header, 4.3.12 central directory, 4.3.16 its end, 4.4.4 flags.
"""

from __future__ import annotations

import random
import struct
import zlib
from functools import lru_cache
from typing import Callable, Dict, List, NamedTuple, Tuple

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_DEFLATED, _REGULAR, _LINK, _FIFO = 8, 0o100600, 0o120777, 0o010600
_EXTREMES = (0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)
#: Bytes that the bomb unpacks to: a thousand times its size.
BOMB = 3 << 30


class Entry(NamedTuple):
    """One file of an archive. ``packed`` is what lies in it, whatever the other fields say."""

    name: bytes
    packed: bytes
    crc: int
    size: int  # unpacked
    stored: int  # packed
    method: int = _DEFLATED
    flags: int = 0x800
    mode: int = _REGULAR
    shared: int = -1  # the entry whose local header it shares; -1: one of its own


def entry(name: str, data: bytes) -> Entry:
    coder = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = coder.compress(data) + coder.flush()
    return Entry(name.encode("utf-8", "surrogateescape"), packed, zlib.crc32(data), len(data), len(packed))


def written(entries: List[Entry], end: Tuple[int, int, int, int] = (0, 0, 0, 0)) -> bytes:
    """The archive. ``end``: what is added to the counts, size and offset in the end record."""
    out = bytearray()
    starts: List[int] = []
    for one in entries:
        starts.append(starts[one.shared] if 0 <= one.shared < len(starts) else len(out))
        if starts[-1] == len(out):
            out += _LOCAL.pack(
                b"PK\3\4", 20, one.flags, one.method, 0, 33, one.crc, one.stored, one.size, len(one.name), 0
            )
            out += one.name + one.packed
    directory = len(out)
    for one, start in zip(entries, starts):
        out += _CENTRAL.pack(
            b"PK\1\2",
            0x314,
            20,
            one.flags,
            one.method,
            0,
            33,
            one.crc,
            one.stored,
            one.size,
            len(one.name),
            0,
            0,
            0,
            0,
            one.mode << 16,
            start,
        )
        out += one.name
    count = min(len(entries), 0xFFFF)
    out += _END.pack(
        b"PK\5\6",
        0,
        0,
        (count + end[0]) & 0xFFFF,
        (count + end[1]) & 0xFFFF,
        (len(out) - directory + end[2]) & 0xFFFFFFFF,
        (directory + end[3]) & 0xFFFFFFFF,
        0,
    )
    return bytes(out)


def damaged(files: Dict[str, bytes], rng: random.Random) -> Tuple[bytes, str]:
    """An archive of these files, with one or two things wrong."""
    entries = [entry(name, data) for name, data in files.items()]
    end, said = (0, 0, 0, 0), []
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(entries))
        name = entries[at].name
        way = rng.choice((*sorted(_ONE), "again", "many", "end", "packed"))
        if way == "again":  # twice, and overlapping
            entries.append(entries[at]._replace(shared=rng.choice((-1, at))))
        elif way == "many":
            entries += _many(at, rng)
        elif way == "end":
            end = (*rng.choices(_COUNTS, k=2), *rng.choices(_SIZES, k=2))  # type: ignore[assignment]
        elif way == "packed":
            entries[at] = _flipped(entries[at], rng)
        else:
            field, value = _ONE[way](entries[at], rng)
            entries[at] = entries[at]._replace(**{field: value})  # type: ignore[arg-type] # the fields' types differ
        said.append(f"{way} of {name[:40]!r}")
    if rng.random() < 0.02:
        entries[0] = Entry(entries[0].name, bomb(), 0, BOMB, len(bomb()))
        said.append("a bomb")
    data = written(entries, end)
    if rng.random() < 0.15:
        cut = rng.randrange(len(data))
        return data[:cut], f"{', '.join(said)}, ends at {cut}"
    return data, ", ".join(said)


#: What a field of one entry may say instead.
_ONE: Dict[str, Callable[[Entry, random.Random], Tuple[str, object]]] = {
    "name": lambda one, rng: ("name", rng.choice(_names(one.name))),
    "mode": lambda _, rng: ("mode", rng.choice((_LINK, _FIFO, 0o020666, 0o060666, 0o140777, 0o040755, 0, 0o177777))),
    "size": lambda one, rng: ("size", rng.choice((*_EXTREMES, one.size + 1, max(0, one.size - 1)))),
    "stored": lambda one, rng: ("stored", rng.choice((*_EXTREMES, one.stored + 1, max(0, one.stored - 1)))),
    "method": lambda _, rng: ("method", rng.choice((0, 1, 6, 9, 12, 14, 93, 95, 99, 0xFFFF))),
    "flags": lambda _, rng: ("flags", rng.choice((0x801, 0x809, 0, 0x20, 0x40, 0x2000, 0xFFFF))),
    "checksum": lambda _, rng: ("crc", rng.getrandbits(32)),
}
#: What is added to the end record's counts, and to the directory's size and offset.
_COUNTS, _SIZES = (0, 0, 1, -1, 1000, 0xFFFF), (0, 0, 1, -1, 46, 1 << 31)


def _many(at: int, rng: random.Random) -> List[Entry]:
    shared = rng.choice((-1, 0))
    return [
        Entry(b"%d/raw/%d" % (at, n), b"", 0, 0, 0, 0, shared=shared) for n in range(rng.choice((100, 25_000, 70_000)))
    ]


def _flipped(one: Entry, rng: random.Random) -> Entry:
    packed = bytearray(one.packed)
    for _ in range(rng.choice((1, 5)) if packed else 0):
        packed[rng.randrange(len(packed))] = rng.getrandbits(8)
    return one._replace(packed=bytes(packed))


def _names(name: bytes) -> Tuple[bytes, ...]:
    return (
        b"../" + name,
        b"/" + name,
        b"a/../../" + name,
        name + b"/",
        b"",
        b".",
        b"..",
        b"/",
        b"\\..\\" + name,
        name + b"\0x",
        b"x/" * 2000 + name,
        b"y" * 300,
        b"C:" + name,
        b"./" + name,
        b"\xff\xfe",
        name + b"/x",
        b"//etc/passwd",
        b"raw",
    )


@lru_cache(maxsize=1)
def bomb() -> bytes:
    """Three megabytes that unpack to three gigabytes, none of them zero: a block that ends flushed, again and again."""
    coder = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = b"a" * (16 << 20)
    return (coder.compress(block) + coder.flush(zlib.Z_FULL_FLUSH)) * (BOMB // len(block)) + b"\3\0"
