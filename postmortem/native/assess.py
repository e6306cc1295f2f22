"""The result of a run of gdb as stacks and gaps, or the sentence that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..cores.executable import check_executable, main_program_of
from ..errors import ToolFailed
from ..evidence import Gap, NativeFrame
from ..evidence.vocabulary import GapCode
from ..memory import ElfCore
from ..signalnames import signal_name
from .corefile import CoreFile, opened
from .locate import REMEDY
from .stacks import Cause, NativeStacks, Transcript, to_frames

Stacks = Dict[int, Tuple[NativeFrame, ...]]

_NAMED = 8  # threads named in a gap, before the rest is only counted
_AGAIN = "analyze it again: gdb's symbol index is in the cache by then"
_ELSEWHERE = "copy the core and the files of its program to a local disk, and analyze it there"
_OTHER_GDB = "try another gdb: `pip install gdb-for-pwndbg`, or name one in POSTMORTEM_GDB"


@dataclass(frozen=True)
class Ending:
    """The end of a run of gdb.

    - ``seconds``: duration of the run
    - ``late``: killed at the deadline
    - ``status``: as in subprocess, -N for signal N; None if gdb did not end even when killed
    """

    seconds: float
    late: bool
    status: Optional[int]
    said: str  # the beginning of its stderr

    def sentence(self) -> str:
        """Return how gdb ended, as a sentence."""
        if self.status is None:
            return f"gdb was abandoned after {self.seconds:.1f} s: it reads a file that does not respond, and cannot be killed"
        if self.late:
            return f"gdb was stopped after {self.seconds:.1f} s"
        if self.status < 0:
            return f"gdb was ended by {signal_name(-self.status)}"
        return f"gdb ended early with status {self.status}{_quoted(self.said)}"

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.status is None:
            return _ELSEWHERE
        return _AGAIN if self.late else _OTHER_GDB


def assess(
    found: Transcript, core: CoreFile, exe: Optional[Path], sysroot: Optional[Path], ending: Ending
) -> NativeStacks:
    """Return the stacks and gaps of one core. Raises ToolFailed without a single thread."""
    if not found.stacks:
        raise _failure(found, core.path, ending)
    with opened(core, sysroot) as image:
        return _assessed(found, image, exe, ending)


def _assessed(found: Transcript, image: Optional[ElfCore], exe: Optional[Path], ending: Ending) -> NativeStacks:
    files = Files(image, exe)
    stacks = to_frames(found.stacks, files.module_of, files.blind)
    tids = [thread.tid for thread in image.threads] if image else []
    wrong = _wrong_executable(image, exe, found, stacks)
    # with the wrong program gdb finds no library at all: one cause, one gap
    gaps = [wrong] if wrong else list(_guessed(found, stacks, files))
    gaps += _gaps(found, tids, ending)
    return NativeStacks(
        {tid: frames for tid, frames in stacks.items() if frames}, tuple(gaps), ending.seconds, found.crash
    )


class Files:
    """The mapped files of a core: the one at an address, and those that gdb cannot have read."""

    def __init__(self, core: Optional[ElfCore], exe: Optional[Path]) -> None:
        self._core = core
        main = main_program_of(core) if core else None
        self._main = main.path if main else None
        self._exe = exe
        self._why: Dict[str, Optional[str]] = {}

    def module_of(self, address: int) -> Optional[str]:
        """Return the path of the file mapped at an address, or None."""
        mapped = self._core.mapped_file(address) if self._core else None
        return mapped.path if mapped else None

    def blind(self, module: Optional[str], known: bool) -> bool:
        """Return whether gdb unwound code of this module without its unwind tables.

        ``known``: whether gdb had a library or symbol there.
        """
        if module is not None and module == self._main:
            return self._exe is None and not known
        return not known or (module is not None and self.why_unreadable(module) is not None)

    def why_unreadable(self, module: str) -> Optional[str]:
        """Return why a module's file cannot be read, or None."""
        if module not in self._why:
            self._why[module] = self._why_unreadable(module)
        return self._why[module]

    def _why_unreadable(self, module: str) -> Optional[str]:
        # a library that gdb names and the core does not map by name: gdb has opened it
        if self._core is None or self._core.base(module) is None:
            return None
        return None if self._core.elf(module) else self._core.unusable[module].text


def _wrong_executable(core: Optional[ElfCore], exe: Optional[Path], found: Transcript, stacks: Stacks) -> Optional[Gap]:
    if exe is None:
        if all(_sure(frames) == len(found.stacks[tid]) for tid, frames in stacks.items()):
            return None  # newer gdbs can find the program by themselves
        return Gap("gdb", "native stacks", code="no-program")
    return check_executable(core, exe) if core is not None else None


def _failure(found: Transcript, core: Path, ending: Ending) -> ToolFailed:
    """Return the error for a core without a single stack; gdb's own words name the file as it was told to open it."""
    ending = replace(ending, said=ending.said.replace(str(core), "{path}"))
    if ending.late:
        return ToolFailed(f"no native stack of {{path}}: {ending.sentence()}", ending.remedy, core)
    if found.version is None and "python" in ending.said.lower() and "not supported" in ending.said.lower():
        return ToolFailed("this gdb was built without Python, which native stacks need", REMEDY)
    if found.version is None and "libpython" in ending.said:
        return ToolFailed(
            f"{ending.sentence()}, so there are no native stacks",
            "install the shared libpython of the Python that postmortem runs on "
            "(Debian: apt install libpython3-dev), or another gdb",
        )
    if found.stopped:
        return ToolFailed(f"no native stack of {{path}}: gdb stopped: {found.stopped}", _AGAIN, core)
    if found.version is not None and not found.announced:
        return ToolFailed(
            f"gdb {found.version} finds no thread in {{path}}{_quoted(ending.said)}",
            "check that the file is a whole core of this kind of machine",
            core,
        )
    return ToolFailed(f"no native stack of {{path}}: {ending.sentence()}", _OTHER_GDB, core)


def _gaps(found: Transcript, tids: Sequence[int], ending: Ending) -> Iterator[Gap]:
    if not found.complete:
        subject = f"native stacks: {len(found.stacks)} of {found.announced} threads"
        if found.stopped:
            yield Gap.of("gdb", subject, "gdb-stopped", remedy=_AGAIN, seconds=ending.seconds, why=found.stopped)
        else:
            yield Gap("gdb", subject, ending.sentence(), ending.remedy, code="gdb-incomplete")
    if found.damaged > (0 if found.complete else 1):  # killing gdb leaves one half-written line
        yield Gap.of("gdb", "native stacks", "gdb-damaged", remedy=_OTHER_GDB, lines=found.damaged)
    for broken, several in _by_reason(found, tids).items():
        yield Gap.of("gdb", f"native stack of {_threads(several)}", broken.code, remedy=broken.remedy, why=broken.why)


class _Broken(NamedTuple):
    code: GapCode
    why: Optional[str] = None
    remedy: Optional[str] = None


def _by_reason(found: Transcript, tids: Sequence[int]) -> Dict[_Broken, List[int]]:
    """Return the threads whose stack ends early or is missing, by what is wrong with it."""
    reasons: Dict[_Broken, List[int]] = {}
    for tid, frames in found.stacks.items():
        if tid in found.errors:
            why = found.errors[tid]
            remedy = _REMEDIES[why.cause] if why.cause is not None else _LOOK
            reasons.setdefault(_Broken("stack-incomplete", why.text, remedy), []).append(tid)
        elif not frames:
            reasons.setdefault(_Broken("no-native-frame"), []).append(tid)
    for tid in dict.fromkeys(tids):
        if tid not in found.stacks and found.complete:
            reasons.setdefault(_Broken("thread-unseen"), []).append(tid)
    return reasons


_LOOK = "`postmortem debug` shows the registers and memory around it"
_REMEDIES: Dict[Cause, Optional[str]] = {
    "late": _AGAIN,
    "many": None,
    "memory": "take a core that is not cut short (ulimit -c unlimited, room on the disk)",
}


def _guessed(found: Transcript, stacks: Stacks, files: Files) -> Iterator[Gap]:
    """Yield a gap for each file beyond which gdb had to guess; guesses that led nowhere are not in ``stacks``."""
    blame: Dict[Optional[str], List[int]] = {}
    for tid, frames in stacks.items():
        sure = _sure(frames)
        if 0 < sure < len(found.stacks[tid]):
            blame.setdefault(frames[sure - 1].module, []).append(tid)
    for module, tids in blame.items():
        why = files.why_unreadable(module) if module is not None else None
        subject = f"native frames beyond {module or 'code that lies in no file'}, in {_threads(tids)}"
        remedy = "pass --sysroot with the files of the core's machine" if module is not None else None
        code: GapCode = "frames-guessed-unread" if why else "frames-guessed"
        yield Gap.of("gdb", subject, code, remedy=remedy, why=why)


def _sure(frames: Sequence[NativeFrame]) -> int:
    """Return the number of frames before the first guess."""
    return next((index for index, frame in enumerate(frames) if frame.trust == "scan"), len(frames))


def _threads(tids: Sequence[int]) -> str:
    shown = ", ".join(str(tid) for tid in tids[:_NAMED])
    more = f" and {len(tids) - _NAMED} more" if len(tids) > _NAMED else ""
    return f"thread {shown}" if len(tids) == 1 else f"threads {shown}{more}"


def _quoted(said: str) -> str:
    r"""Return the last informative line of stderr, for the end of a sentence.

    Warnings are skipped, and source places such as "57\t./futex.c: No such file…" that gdb could not show.
    """
    lines = [line.strip().rstrip(".") for line in said.splitlines()]
    telling = [line for line in lines if line and not line.lower().startswith("warning") and not line[0].isdigit()]
    return f": {telling[-1][:200]}" if telling else ""
