"""Mapped files according to the dynamic loader's list, for a core without NT_FILE.

The main program's dynamic section leads to the list: DT_DEBUG → r_debug.r_map → link_map. The main program itself has
no name in it.

Source: <link.h>, unchanged since glibc 2.0; musl has the same.
"""

from __future__ import annotations

import os
from typing import Callable, Iterable, Iterator, List, Mapping, Optional, Set, Tuple, Union

from .base import Fault, MappedFile, Memory
from .elf import EHDR, PT_LOAD, Elf, NotElf, parse_header, parse_segments

PT_DYNAMIC, DT_DEBUG = 2, 21
AT_PHDR, AT_PHNUM, AT_ENTRY = 3, 5, 9
MAX_LIBRARIES, MAX_DYNAMIC = 10_000, 512
_PAGE = 4096
_R_MAP = 8  # offset in struct r_debug

#: Maps a file name of the target to a path on this machine, to an open descriptor (which is taken over), or to None if
#: unavailable. May raise OSError.
Locate = Callable[[str], Union[str, int, None]]


def opened(name: str, here: Union[str, int]) -> Elf:
    """Open the file located for a name. Raises OSError, NotElf or ValueError."""
    return Elf(here) if isinstance(here, str) else Elf(name, here)


def linked_files(memory: Memory, starts: Iterable[int], locate: Locate) -> List[MappedFile]:
    """Return the files of the loader's list, ordered by address.

    ``starts``: addresses at which segments begin; one of them is the main program's.
    """
    found: List[MappedFile] = []
    for start in starts:
        try:
            head = _r_debug(memory, start)
            if head:
                for bias, name in _libraries(memory, memory.u64(head + _R_MAP)):
                    found += _pieces(bias, name, locate)
        except (Fault, NotElf):
            continue
        if found:
            break
    return sorted(found)


def program_files(path: str, auxv: Mapping[int, int]) -> List[MappedFile]:
    """Return the mapped pieces of a main program, placed by the auxiliary vector.

    Empty unless entry point and number of headers match the vector (AT_PHDR, AT_PHNUM, AT_ENTRY: getauxval(3)).
    """
    try:
        elf = Elf(path)
    except (OSError, NotElf, ValueError):
        return []
    _kind, _machine, entry, phoff, phnum, _s, _n, _x = parse_header(elf.data[: EHDR.size])
    bias = auxv.get(AT_PHDR, 0) - elf.first_vaddr - phoff
    same = phnum == auxv.get(AT_PHNUM) and bias + entry == auxv.get(AT_ENTRY)
    elf.close()
    return sorted(_pieces(bias, path, lambda name: name)) if same else []


def _r_debug(memory: Memory, start: int) -> Optional[int]:
    """Return the address of r_debug for a program whose first page is at ``start``; None if it has none.

    Raises: Fault, NotElf.
    """
    page = memory.read(start, _PAGE)
    _kind, _machine, _entry, phoff, phnum, _s, _n, _x = parse_header(page)
    segments = parse_segments(page, phoff, phnum)
    first = min((s.vaddr - s.offset for s in segments if s.type == PT_LOAD), default=0) & ~(_PAGE - 1)
    for segment in segments:
        if segment.type == PT_DYNAMIC:
            words = memory.words(start - first + segment.vaddr, 2 * min(segment.memsz // 16, MAX_DYNAMIC))
            return dict(zip(words[::2], words[1::2])).get(DT_DEBUG)
    return None


def _libraries(memory: Memory, link: int) -> Iterator[Tuple[int, str]]:
    """Yield (load bias, path) of each library; the list may be cut off or circular."""
    seen: Set[int] = set()
    while link and link not in seen and len(seen) < MAX_LIBRARIES:
        seen.add(link)
        try:
            bias, name_at, _dynamic, following = _entry(memory, link)
            name = os.fsdecode(memory.cstring(name_at, 4096))
        except Fault:
            return
        if name.startswith("/"):
            yield bias, name
        link = following


def _entry(memory: Memory, link: int) -> Tuple[int, ...]:
    """Return l_addr, l_name, l_ld, l_next of struct link_map.

    Also reads l_prev: gdb does so and gives up if it cannot, so a core made of the pages read here must contain it.
    """
    try:
        return memory.words(link, 5)[:4]
    except Fault:
        return memory.words(link, 4)


def _pieces(bias: int, name: str, locate: Locate) -> Iterator[MappedFile]:
    """Yield the pieces of a file as the loader maps it; only its first page if the file is unavailable."""
    try:
        here = locate(name)
        elf = opened(name, here) if here is not None else None
    except (OSError, NotElf, ValueError):
        elf = None
    if elf is None:
        yield MappedFile(bias, bias + _PAGE, 0, name)
        return
    for segment in elf.segments:
        if segment.type == PT_LOAD and segment.filesz:
            start = bias + (segment.vaddr & ~(_PAGE - 1))
            end = bias + segment.vaddr + segment.filesz
            yield MappedFile(start, -(-end // _PAGE) * _PAGE, segment.offset & ~(_PAGE - 1), name)
    elf.close()
