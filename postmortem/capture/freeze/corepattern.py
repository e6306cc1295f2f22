"""Where the kernel would put a process's core file (core(5); fs/coredump.c, format_corename, Linux 6.18).

The folder is opened while the process lives, through its own root and working directory, so that neither another
root nor another mount namespace misleads. What of the name cannot be foretold (the time, the dumping thread's name)
may be anything: the folder is compared before and after.
"""

# Paths below /proc are plain strings, formatted thousands of times:

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
#: Conversions whose value is not known beforehand → what it may look like. A "/" in any of them becomes "!".
_OPEN = {
    "i": r"\d+", "I": r"\d+", "d": r"\d", "s": r"\d+", "t": r"\d+", "c": r"\d+", "C": r"\d+", "F": r"\d+",
    "e": r"[^/]*", "f": r"[^/]*", "E": r"[^/]*", "h": r"[^/]*",
}  # fmt: skip
_MOST_NAMES = 100_000


class Place(NamedTuple):
    """A held folder (to be closed by whoever asked), the names that a core there may have, and what is there already.

    ``pid``: as the process's own namespace has it, and so the core; ``names_process``: the name tells whose core it is;
    ``users``: to whom such a file may belong.
    """

    folder: Folder
    name: Pattern[str]
    before: List[str]
    pid: int
    names_process: bool
    users: Tuple[int, ...]

    def appeared(self) -> List[str]:
        """Names of files that were not there."""
        return sorted(set(_matching(self.folder, self.name)) - set(self.before))


def place(pid: int) -> Place:
    """Raises CaptureFailed when the kernel would write no file, or one that cannot be told from others; OSError."""
    pattern = parsers.text(parsers.read(f"{_KERNEL}/core_pattern")).rstrip("\n")
    uses_pid = parsers.read(f"{_KERNEL}/core_uses_pid").strip() not in (b"", b"0")
    if not pattern:
        raise CaptureFailed("the kernel writes no cores here (core_pattern is empty)", _REMEDY)
    if pattern[0] in "|@":
        what = pattern[1:].split(" ")[0]
        raise CaptureFailed(f"the kernel hands cores to {what}, not to a file", f"coredumpctl, or {_REMEDY}")
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
    """The letters behind each "%" that stands for a value."""
    return [letter for letter in re.findall(r"%(.)", pattern) if letter != "%"]


def compiled(pattern: str, known: Dict[str, str], with_pid: bool) -> Pattern[str]:
    """The names that a pattern without folders can lead to. Unknown conversions yield nothing, as in the kernel."""

    def value(letter: str) -> str:
        if letter == "%":
            return "%"
        return re.escape(known[letter]) if letter in known else _OPEN.get(letter, "")

    text = _replaced(pattern, re.escape, value)
    return re.compile(text + (re.escape("." + known["p"]) if with_pid else ""), re.DOTALL)


def _folder(pattern: str, known: Dict[str, str]) -> str:
    """Raises CaptureFailed where not all of it is known beforehand."""
    unknown = [letter for letter in conversions(pattern) if letter not in known]
    if unknown:
        raise CaptureFailed(
            f"the folder of the kernel's cores cannot be foretold (%{unknown[0]} in core_pattern)", _REMEDY
        )
    return _replaced(pattern, str, lambda letter: "%" if letter == "%" else known[letter]).lstrip("/")


def _replaced(pattern: str, literal: Callable[[str], str], value: Callable[[str], str]) -> str:
    """A "%" at the very end stands for nothing."""
    parts = re.split(r"%(.|$)", pattern, flags=re.DOTALL)
    return "".join((value(part) if part else "") if index % 2 else literal(part) for index, part in enumerate(parts))


def _known(pid: int) -> Dict[str, str]:
    """Conversion → value. ``%p`` is the process's number in its own namespace, ``%P`` in ours."""
    status = parsers.status(f"/proc/{pid}")
    inner = status.get("NSpid", str(pid)).split()[-1]
    return {"p": inner, "P": str(pid), "u": status["Uid"].split()[0], "g": status["Gid"].split()[0]}


def _matching(folder: Folder, name: Pattern[str]) -> List[str]:
    names = folder.names(most=_MOST_NAMES + 1)
    if len(names) > _MOST_NAMES:
        raise CaptureFailed("the folder of the kernel's cores has too many files to look through", _REMEDY)
    return [each for each in names if name.fullmatch(each)]


def open_plain(folder: Folder, name: str, users: Sequence[int]) -> int:
    """Return a descriptor of a regular file that has no other name and belongs to one of these users, as the kernel's cores do.
    Raises OSError."""
    descriptor = folder.open(name)
    found = os.fstat(descriptor)
    if found.st_nlink != 1 or found.st_uid not in users:
        os.close(descriptor)
        raise Unfit("is no file that the kernel has just written", name)
    return descriptor
