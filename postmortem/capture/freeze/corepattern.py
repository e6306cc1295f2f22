"""The place where the kernel would write a process's core file.

The folder is opened while the process lives, through the process's own root or working directory, so that a different
root directory or mount namespace does not lead to another folder. Conversions whose value is not known beforehand (the
time, the dumping thread's name) match anything; a new core is found by comparing the folder before and after the dump.

Sources: core(5); fs/coredump.c, format_corename (Linux 6.18).
"""

from __future__ import annotations

import os
import re
from typing import Callable, Dict, List, NamedTuple, Pattern, Sequence, Tuple

from ...errors import CaptureFailed
from ...foreign.files import Unfit
from ...foreign.held import Folder
from ...foreign.root import Root
from ..procfs import parsers

_KERNEL = "/proc/sys/kernel"
_REMEDY = "sudo sysctl kernel.core_pattern=core.%p lets it be found"
#: Conversions whose value is not known beforehand → a regular expression for it. The kernel replaces "/" in a value by
#: "!".
_OPEN = {
    "i": r"\d+", "I": r"\d+", "d": r"\d", "s": r"\d+", "t": r"\d+", "c": r"\d+", "C": r"\d+", "F": r"\d+",
    "e": r"[^/]*", "f": r"[^/]*", "E": r"[^/]*", "h": r"[^/]*",
}  # fmt: skip
_MOST_NAMES = 100_000


class Place(NamedTuple):
    """A held folder for the core of one process, with the names that the core may have.

    - ``folder``: open; the caller closes it
    - ``name``: pattern of the core's file name
    - ``before``: matching names that exist already
    - ``pid``: in the innermost pid namespace of the process, as in the core
    - ``names_process``: whether the file name contains the pid
    - ``users``: uids that may own the file
    """

    folder: Folder
    name: Pattern[str]
    before: List[str]
    pid: int
    names_process: bool
    users: Tuple[int, ...]

    def appeared(self) -> List[str]:
        """Return the matching names that have been created since, sorted."""
        return sorted(set(_matching(self.folder, self.name)) - set(self.before))


def place(pid: int) -> Place:
    """Return where the kernel would write the core of a process.

    Raises:
    - CaptureFailed: the kernel would write no file, would overwrite one, or one that could not be distinguished from
      others
    - OSError
    """
    pattern = parsers.text(parsers.read(f"{_KERNEL}/core_pattern")).rstrip("\n")
    uses_pid = parsers.read(f"{_KERNEL}/core_uses_pid").strip() not in (b"", b"0")
    if not pattern:
        raise CaptureFailed("the kernel writes no cores here (core_pattern is empty)", _REMEDY)
    if pattern[0] in "|@":
        what = pattern[1:].split(" ")[0]
        raise CaptureFailed(f"the kernel hands cores to {what}, not to a file", f"use coredumpctl, or {_REMEDY}")
    folder_pattern, _slash, name_pattern = pattern.rpartition("/")
    known = _known(pid)
    base = "root" if pattern[0] == "/" else "cwd"
    with Root.at(f"/proc/{pid}/{base}") as root:
        held = root.hold(_folder(folder_pattern, known) or ".")
        try:
            folder = Folder.at(".", held)
        finally:
            os.close(held)
    try:
        with_pid = uses_pid and "p" not in conversions(pattern)
        name = compiled(name_pattern, known, with_pid)
        before = _matching(folder, name)
        if before and "t" not in conversions(name_pattern):
            raise CaptureFailed(
                f"the kernel's core of process {pid} would overwrite a file: {before[0]}", f"move it away, or {_REMEDY}"
            )
    except BaseException:
        folder.close()
        raise
    names_process = with_pid or bool({"p", "P"} & set(conversions(pattern)))
    return Place(folder, name, before, int(known["p"]), names_process, (0, int(known["u"])))


def conversions(pattern: str) -> List[str]:
    """Return the letters of all conversions in a core pattern; "%%" is none."""
    return [letter for letter in re.findall(r"%(.)", pattern) if letter != "%"]


def compiled(pattern: str, known: Dict[str, str], with_pid: bool) -> Pattern[str]:
    """Compile a pattern without folders to the file names that it can produce.

    Unknown conversions yield nothing, as in the kernel. ``with_pid``: append ".PID" (kernel.core_uses_pid).
    """

    def value(letter: str) -> str:
        if letter == "%":
            return "%"
        return re.escape(known[letter]) if letter in known else _OPEN.get(letter, "")

    text = _replaced(pattern, re.escape, value)
    return re.compile(text + (re.escape("." + known["p"]) if with_pid else ""), re.DOTALL)


def _folder(pattern: str, known: Dict[str, str]) -> str:
    """Expand the folder of a core pattern; raise CaptureFailed where a conversion's value is not known beforehand."""
    unknown = [letter for letter in conversions(pattern) if letter not in known]
    if unknown:
        raise CaptureFailed(
            f"the folder of the kernel's cores cannot be predicted (%{unknown[0]} in core_pattern)", _REMEDY
        )
    return _replaced(pattern, str, lambda letter: "%" if letter == "%" else known[letter]).lstrip("/")


def _replaced(pattern: str, literal: Callable[[str], str], value: Callable[[str], str]) -> str:
    """Replace conversions and literal text of a core pattern; a single "%" at the very end yields nothing."""
    parts = re.split(r"%(.|$)", pattern, flags=re.DOTALL)
    return "".join((value(part) if part else "") if index % 2 else literal(part) for index, part in enumerate(parts))


def _known(pid: int) -> Dict[str, str]:
    """Map conversions to their values; ``%p`` is the pid in the innermost namespace, ``%P`` in ours."""
    status = parsers.status(f"/proc/{pid}")
    inner = status.get("NSpid", str(pid)).split()[-1]
    return {"p": inner, "P": str(pid), "u": status["Uid"].split()[0], "g": status["Gid"].split()[0]}


def _matching(folder: Folder, name: Pattern[str]) -> List[str]:
    names = folder.names(most=_MOST_NAMES + 1)
    if len(names) > _MOST_NAMES:
        raise CaptureFailed("the folder of the kernel's cores has too many files to search", _REMEDY)
    return [each for each in names if name.fullmatch(each)]


def open_plain(folder: Folder, name: str, users: Sequence[int]) -> int:
    """Open a regular file that has one link and is owned by one of ``users``, as the kernel's cores are.

    Returns its descriptor. Raises OSError.
    """
    descriptor = folder.open(name)
    found = os.fstat(descriptor)
    if found.st_nlink != 1 or found.st_uid not in users:
        os.close(descriptor)
        raise Unfit("is not a file that the kernel has just written", name)
    return descriptor
