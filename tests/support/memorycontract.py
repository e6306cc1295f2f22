"""What every Memory must do. Needs the standard library alone: it also runs in a child of gdb's.

``PROGRAM`` lays out memory of its own, prints where and what it is, and waits; each check compares a Memory of that
process, or of a core of it, with what the process itself said.
"""

from __future__ import annotations

import json
import struct
from typing import Any

#: Five pages in a row: text, the same made read-only (a mapping of its own, so a segment of its own), pages of zeros
#: that were never touched, numbers; behind the fifth nothing is mapped.
PROGRAM = """
import ctypes, json, mmap, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER_ANY: Yama lets gdb attach
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
PAGE = 4096
start = libc.mmap(None, 16 * PAGE, 3, 0x22, -1, 0)
assert libc.munmap(start + 5 * PAGE, 11 * PAGE, 0) == 0
pattern = bytes((7 * i + i // 256) % 251 + 1 for i in range(2 * PAGE))
ctypes.memmove(start, pattern, len(pattern))
ctypes.memmove(start + 100, b"a name\\0", 7)
numbers = struct.pack("<BxHIqQd", 200, 60000, 4_000_000_000, -5, 2**64 - 3, 2.5) + struct.pack("<i", -7)
ctypes.memmove(start + 4 * PAGE, numbers, len(numbers))
ctypes.memmove(start + 5 * PAGE - 4, b"end\\0", 4)
assert libc.mprotect(start + PAGE, PAGE, 1) == 0
said = ctypes.string_at(start, 2 * PAGE).hex(), ctypes.string_at(start + 4 * PAGE, PAGE).hex()
print(json.dumps({"start": start, "head": said[0], "tail": said[1]}), flush=True)
print("ready", flush=True)
sys.stdin.read()
"""
PAGE = 4096


class Facts:
    """What the program said."""

    def __init__(self, line: str) -> None:
        said = json.loads(line)
        self.start = said["start"]
        self.head = bytes.fromhex(said["head"])
        self.tail = bytes.fromhex(said["tail"])
        self.numbers = self.start + 4 * PAGE
        self.end = self.start + 5 * PAGE  # nothing is there


def faults(memory: Any, address: int, size: int) -> bool:
    """Does the read raise Fault, with what was asked for and a reason? A short read would be worse than none."""
    try:
        memory.read(address, size)
    except Exception as caught:
        exc: Any = caught  # gdb has its own copy of the class
        return type(exc).__name__ == "Fault" and (exc.address, exc.size) == (address, size) and bool(exc.reason)
    return False


def reads_are_exact(memory: Any, facts: Facts) -> None:
    """Any piece, of any length, at any alignment, is what the program itself reads there."""
    for at, size in ((0, 1), (0, 2 * PAGE), (1, 7), (PAGE - 3, 6), (PAGE, PAGE), (2 * PAGE - 1, 1), (17, 0)):
        assert memory.read(facts.start + at, size) == facts.head[at : at + size], (at, size)
    assert memory.read(facts.numbers, PAGE) == facts.tail


def reads_cross_segments(memory: Any, facts: Facts) -> None:
    """Mappings that lie next to each other read as one."""
    whole = facts.head + bytes(2 * PAGE) + facts.tail
    assert memory.read(facts.start, 5 * PAGE) == whole
    assert memory.read(facts.start + PAGE - 8, 16) == whole[PAGE - 8 : PAGE + 8]


def holes_are_zeros(memory: Any, facts: Facts) -> None:
    """Pages that were mapped and never touched are zeros, not a fault."""
    assert memory.read(facts.start + 2 * PAGE, 2 * PAGE) == bytes(2 * PAGE)
    assert memory.u64(facts.start + 3 * PAGE) == 0


def what_is_not_there_faults(memory: Any, facts: Facts) -> None:
    """Unmapped memory, the zero page, reads that begin in mapped memory and end outside: Fault, with what was asked."""
    for address, size in ((facts.end, 1), (facts.end - 4, 8), (facts.end - PAGE, PAGE + 1), (0, 1), (8, 8), (0, PAGE)):
        assert faults(memory, address, size), (address, size)


def senseless_reads_fault(memory: Any, facts: Facts) -> None:
    """Negative and huge sizes, addresses outside of any address space: Fault, at once."""
    for size in (-1, -PAGE, 1 << 40, 1 << 63, 1 << 64, 1 << 70):
        assert faults(memory, facts.start, size), size
    for address in (-1, -(1 << 63), 1 << 47, (1 << 47) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 8, 1 << 64, 1 << 70):
        assert faults(memory, address, 8), address


def numbers_are_read(memory: Any, facts: Facts) -> None:
    """Every width, signed and not, little-endian."""
    at = facts.numbers
    assert memory.u8(at) == 200
    assert memory.u16(at + 2) == 60000
    assert memory.u32(at + 4) == 4_000_000_000
    assert memory.i64(at + 8) == -5
    assert memory.u64(at + 16) == 2**64 - 3
    assert memory.f64(at + 24) == 2.5
    assert memory.i32(at + 32) == -7
    assert memory.u64(facts.start + PAGE - 4) == struct.unpack_from("<Q", facts.head, PAGE - 4)[0]


def numbers_that_are_cut_fault(memory: Any, facts: Facts) -> None:
    """A number half outside is no number."""
    for read, size in (
        (memory.u64, 8),
        (memory.u32, 4),
        (memory.i32, 4),
        (memory.u16, 2),
        (memory.i64, 8),
        (memory.f64, 8),
    ):
        try:
            read(facts.end - size + 1)
        except Exception as exc:
            assert type(exc).__name__ == "Fault", exc
        else:
            raise AssertionError(read)


def words_are_read(memory: Any, facts: Facts) -> None:
    """Many words at once, across segments too; none for a senseless count."""
    assert memory.words(facts.start, 1024) == struct.unpack("<1024Q", facts.head)
    assert memory.words(facts.start + PAGE - 8, 2) == struct.unpack_from("<2Q", facts.head, PAGE - 8)
    assert memory.words(facts.start, 0) == memory.words(facts.start, -3) == ()
    for address, count in ((facts.end - 8, 2), (facts.end, 1), (facts.start, 1 << 40), (1 << 63, 2)):
        try:
            memory.words(address, count)
        except Exception as exc:
            assert type(exc).__name__ == "Fault", exc
        else:
            raise AssertionError((address, count))


def strings_are_read(memory: Any, facts: Facts) -> None:
    """Up to the NUL, to the limit, and at the very end of a mapping without a read beyond it."""
    assert memory.cstring(facts.start + 100) == b"a name"
    assert memory.cstring(facts.start + 100, 3) == b"a n"
    assert memory.cstring(facts.end - 4) == b"end"
    assert memory.cstring(facts.start + 200, 5000) == facts.head[200:5200]


CHECKS = (
    reads_are_exact, reads_cross_segments, holes_are_zeros, what_is_not_there_faults, senseless_reads_fault,
    numbers_are_read, numbers_that_are_cut_fault, words_are_read, strings_are_read,
)  # fmt: skip


def image_checks(image: Any, facts: Facts) -> None:
    """Check an Image: writable mappings and files are in order and true; an ELF file is at hand."""
    spans = image.writable
    assert spans == sorted(spans)
    assert any(low <= facts.start < high for low, high in spans)
    assert not any(low <= facts.end < high for low, high in spans)
    files = image.files
    assert files
    assert files == sorted(files)
    libc = next(file for file in files if "libc" in file.path and file.offset == 0)
    elf = image.elf(libc.path)
    assert elf is not None
    assert image.read(libc.start, 64) == elf.data[:64]
    text = next(file for file in files if file.path == libc.path and file.offset > 0)
    assert image.read(text.start, 4096) == elf.data[text.offset : text.offset + 4096]
    assert image.elf("/no/such/file") is None
