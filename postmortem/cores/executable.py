"""The executable that left a core, and whether the file here is the same build.

The kernel passes a program the addresses of its program headers and its entry point (AT_PHDR and AT_ENTRY of the
auxiliary vector, getauxval(3)). The mapped file that contains them is the main program, whatever argv[0] or the
process's name are. For an interpreter run as `ld.so PROGRAM` that file is ld.so, and the program is unknown.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import List, Optional, Sequence, Tuple

from ..evidence import Gap
from ..evidence.facts import Value
from ..evidence.vocabulary import GapCode
from ..memory import Elf, ElfCore, Fault, MappedFile, NotElf
from ..memory.elfcore import DELETED

AT_PHDR, AT_ENTRY, AT_EXECFN = 3, 9, 31
_LOADERS = ("ld-linux", "ld-musl", "ld64.so", "ld.so")


def main_program(files: Sequence[MappedFile], at_phdr: Optional[int], at_entry: Optional[int]) -> Optional[MappedFile]:
    """Return the mapping of the main program in NT_FILE; None when neither address lies in a mapped file."""
    for address in (at_phdr, at_entry):
        if address is None:
            continue
        for file in files:
            if file.start <= address < file.end:
                return file
    return None


def main_program_of(core: ElfCore) -> Optional[MappedFile]:
    """Return the mapping of a core's main program, or None."""
    return main_program(core.files, core.auxv.get(AT_PHDR), core.auxv.get(AT_ENTRY))


def find_executable(core: ElfCore, sysroot: Optional[Path] = None) -> Tuple[Optional[Path], Optional[Gap]]:
    """Return (the main program's file on this machine or None, what is missing or uncertain about it or None).

    ``sysroot``: the directory below which the core's names are looked up. A file under another name (AT_EXECFN, or the
    path without " (deleted)") counts only with the core's build-id.
    """
    mapped = main_program_of(core)
    if mapped is None:
        return None, _gap("program-unnamed")
    name = mapped.path
    if Path(name).name.startswith(_LOADERS):
        return None, _gap("program-loaded", loader=name)
    elf = core.elf(name)
    if elf is not None:
        by_name = not core.has_stand_in(name) and elf.path.startswith("/")
        return _below(sysroot if by_name else None, elf.path), _doubt(core, name, elf)
    wanted = core.build_id(name)
    for other in _other_names(core, name):
        if wanted is not None and _build_id(core.look_up(other)) == wanted:
            return _below(sysroot, other), None
    return None, _gap("program-unusable", program=name, why=core.unusable[name].text)


def take_executable(core: ElfCore, exe: Path) -> None:
    """Use a given file as the core's main program wherever the core is read."""
    core.place_program(str(exe))
    mapped = main_program_of(core)
    if mapped is not None:
        core.stand_in(mapped.path, str(exe))


def check_executable(core: ElfCore, exe: Path) -> Optional[Gap]:
    """Return a gap when a given file is not the core's main program, if both have a build-id."""
    mapped = main_program_of(core)
    wanted = core.build_id(mapped.path) if mapped else None
    if mapped is None or wanted is None or _build_id(_opened(str(exe))) == wanted:
        return None
    return _gap("wrong-program", file=str(exe), program=mapped.path)


def _doubt(core: ElfCore, name: str, elf: Elf) -> Optional[Gap]:
    """Return a gap when the file has a build-id and the core shows none; where both are known, ElfCore compares them."""
    if elf.build_id is None or core.build_id(name) is not None:
        return None
    return _gap("program-doubtful", program=name)


def _other_names(core: ElfCore, name: str) -> List[str]:
    names = [name[: -len(DELETED)]] if name.endswith(DELETED) else []
    with contextlib.suppress(Fault):
        names.append(core.cstring(core.auxv.get(AT_EXECFN, 0), 4096).decode("utf-8", "surrogateescape"))
    return [other for other in names if other.startswith("/")]


def _below(sysroot: Optional[Path], name: str) -> Path:
    return (Path(name) if sysroot is None else Path(f"{str(sysroot).rstrip('/')}{name}")).absolute()


def _opened(path: str) -> Optional[Elf]:
    try:
        return Elf(path)
    except (OSError, NotElf, ValueError):
        return None


def _build_id(elf: Optional[Elf]) -> Optional[str]:
    if elf is None:
        return None
    found = elf.build_id
    elf.close()
    return found


def _gap(code: GapCode, **slots: Value) -> Gap:
    return Gap("core", "main program", code=code, slots=slots)
