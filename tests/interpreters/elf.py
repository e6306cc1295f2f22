"""Gives a program another dynamic loader and library path, without moving a byte of what is loaded.

An interpreter unpacked from a newer distribution needs that distribution's ld.so and libc. Starting it as
``ld.so program`` makes a process whose /proc/PID/exe is the loader, LD_LIBRARY_PATH would reach every child, a
chroot needs root and hides the tests' files, and patchelf adds segments (its result crashes for Debian's
interpreters, which are not position-independent). So the two strings go where the file has zeros to spare, between
the end of a segment and the end of its last page, which is mapped anyway: segments, addresses, symbols and build-id
stay what the distribution shipped.

Sources: the generic ABI (elf.h of glibc) for the structs; ``DT_RPATH`` rather than ``DT_RUNPATH`` because only the
former also serves the libraries of libraries (ld.so(8)).
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional, Tuple, Union

_Image = Union[bytes, bytearray]
_PAGE = 4096
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_SEGMENT = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_DYNAMIC = struct.Struct("<qQ")  # Elf64_Dyn
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NULL, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 0, 5, 15, 29


class NotPatchable(Exception):
    """The file is no 64-bit little-endian ELF program with room for the strings; the message says what it lacks."""


class _Segment(NamedTuple):
    at: int  # of its header, in the file
    type: int
    flags: int
    offset: int
    address: int
    physical: int
    size: int
    memory: int
    align: int


def loader(program: Path) -> str:
    """The path of the dynamic loader that ``program`` asks the kernel for. Raises NotPatchable."""
    image = program.read_bytes()
    interp = _only(image, _PT_INTERP)
    return image[interp.offset : interp.offset + interp.size].rstrip(b"\0").decode()


def rehome(program: Path, interpreter: str, library_path: str) -> None:
    """Makes ``program`` start under ``interpreter`` and find its libraries in ``library_path`` alone first.

    Raises NotPatchable, and leaves the file alone then.
    """
    image = bytearray(program.read_bytes())
    interp, dynamic = _only(image, _PT_INTERP), _only(image, _PT_DYNAMIC)
    loads = [segment for segment in _segments(image) if segment.type == _PT_LOAD]
    asked = interpreter.encode() + b"\0"
    strings = asked + library_path.encode() + b"\0"
    offset, address = _room(image, loads, len(strings))
    image[offset : offset + len(strings)] = strings

    _SEGMENT.pack_into(
        image, interp.at, interp.type, interp.flags, offset, address, address, len(asked), len(asked), interp.align
    )
    _move_section(image, interp.offset, (address, offset, len(asked)))
    _add_dynamic(image, dynamic, address + len(asked))
    program.write_bytes(bytes(image))


def _segments(image: _Image) -> Iterator[_Segment]:
    if image[:6] != b"\x7fELF\x02\x01" or len(image) < _HEADER.size:
        raise NotPatchable("it is no 64-bit little-endian ELF file")
    header = _HEADER.unpack_from(image)
    start, size, count = header[5], header[9], header[10]
    if size < _SEGMENT.size or start + size * count > len(image):
        raise NotPatchable("its program headers are cut off")
    for at in range(start, start + size * count, size):
        kind, flags, offset, address, physical, in_file, in_memory, align = _SEGMENT.unpack_from(image, at)
        yield _Segment(at, kind, flags, offset, address, physical, in_file, in_memory, align)


def _only(image: _Image, kind: int) -> _Segment:
    for segment in _segments(image):
        if segment.type == kind:
            return segment
    raise NotPatchable(f"it has no program header of type {kind}: is it linked statically?")


def _room(image: _Image, loads: List[_Segment], wanted: int) -> Tuple[int, int]:
    """File offset and address of ``wanted`` unused bytes in the last page of a segment without .bss."""
    for segment in loads:
        end = segment.offset + segment.size
        spare = image[end : end + -end % _PAGE]
        others = any(end <= other.offset < end + wanted for other in loads)
        if segment.memory == segment.size and len(spare) >= wanted and not any(spare[:wanted]) and not others:
            return end, segment.address + segment.size
    raise NotPatchable(f"no segment has {wanted} bytes to spare in its last page")


def _move_section(image: bytearray, was: int, now: Tuple[int, int, int]) -> None:
    """gdb looks for the loader by the section ``.interp``: it must agree with the program header."""
    header = _HEADER.unpack_from(image)
    start, size, count = header[6], header[11], header[12]
    if size < _SECTION.size or start + size * count > len(image):
        return  # it has none: then nobody looks for the section either
    for at in range(start, start + size * count, size):
        name, kind, flags, _, offset, _, link, info, align, entry = _SECTION.unpack_from(image, at)
        if offset == was and kind == 1:  # SHT_PROGBITS
            address, moved, length = now
            _SECTION.pack_into(image, at, name, kind, flags, address, moved, length, link, info, align, entry)
            return


def _add_dynamic(image: bytearray, dynamic: _Segment, string: int) -> None:
    """Linkers leave spare null entries at the end of .dynamic; the first one becomes the DT_RPATH."""
    entries = range(dynamic.offset, dynamic.offset + dynamic.size, _DYNAMIC.size)
    strings: Optional[int] = None
    for at in entries:
        tag, value = _DYNAMIC.unpack_from(image, at)
        if tag in (_DT_RPATH, _DT_RUNPATH):
            raise NotPatchable("it has a library path already, which would win")
        if tag == _DT_STRTAB:
            strings = value
        if tag == _DT_NULL:
            if strings is None or at == entries[-1]:
                break
            # An offset into the string table in name only: the loader adds it to the table's address, unchecked.
            _DYNAMIC.pack_into(image, at, _DT_RPATH, (string - strings) % (1 << 64))
            return
    raise NotPatchable(".dynamic has no entry to spare")
