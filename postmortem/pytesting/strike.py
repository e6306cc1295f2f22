"""The watchdog's reaction to a passed limit: examine, answer, interrupt; end a process that cannot be interrupted.

No signal is sent before the capture is over: what is captured is the hang, not its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

from .. import programs, signalling
from ..narration import escaped
from . import answer, page
from .answer import Answer
from .target import Target

#: Seconds for a test to end after it was interrupted; seconds for the process to end after it was told to.
GRACE_S, LAST_GRACE_S = 5.0, 1.0
#: Seconds between interruptions: cleanup code may hang as well.
_AGAIN_S = 1.0
_LOOK_S = 0.01
#: Seconds: the capture's budget is 30 s, and the examination itself must not hang.
_EXAMINATION_S = 60.0
_LONGEST_NAME = 80
_SAID = 600  # characters of a failed examination's output
_MOST_NAMES = 10_000


def strike(shared: page.Page, told: Dict[str, Any], target: Target, phase: page.Phase) -> None:
    """Handle a phase whose limit has passed; return when the process goes on or has ended."""
    nodeid = shared.node()
    shared.words[page.STRUCK] = phase.serial
    if phase.serial in (shared.words[page.DEBUGGED], 0) or shared.serial != phase.serial:
        shared.words[page.STRUCK] = 0  # it has just ended, or a debugger has begun
        return
    with _pending(told):
        found = find_out(told, nodeid, phase)
        _keep(found, told)
    shared.answer(phase.serial, found.encode())
    if phase.kind == "exit":
        _end_at_exit(shared, told, target, found)
    elif not _interrupted(shared, told, target, phase.serial):
        _end(shared, told, target, found)


# ---------------------------------------------------------------------- examination


def find_out(told: Dict[str, Any], nodeid: str, phase: page.Phase) -> Answer:
    """Capture and diagnose the process; return an answer in any case."""
    place, said = None, ""
    try:
        place = _free_place(told, nodeid, phase.kind)
        said = _examine(told, place, phase.limit)
        report = json.loads((place / "report.json").read_bytes())
        text = (place / "report.txt").read_text("utf-8", "replace")
    except (OSError, ValueError) as exc:
        why = f"{said[-_SAID:].strip() or exc}"
        there = str(place) if place is not None and (place / "manifest.json").exists() else ""
        message = answer.failed(phase.kind, phase.limit, why)
        text = answer.shown(why.splitlines())
        return Answer(nodeid, phase.kind, phase.limit, "", there, message, text, told["run"], told["worker"])
    message = answer.message(phase.kind, phase.limit, report, str(place))
    return Answer(
        nodeid,
        phase.kind,
        phase.limit,
        report.get("verdict") or "",
        str(place),
        message,
        text,
        told["run"],
        told["worker"],
    )


def _folder(told: Dict[str, Any]) -> Path:
    """Return the directory of all bundles, created with mode 0700 and ignored by git; raise OSError if that fails."""
    folder = Path(told["dir"])
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n")
    return folder


def _free_place(told: Dict[str, Any], nodeid: str, kind: str) -> Path:
    """Create and return a directory named after the test; raise OSError if that fails."""
    folder = _folder(told)
    file, *rest = nodeid.split("::")
    subject = f"exit-{told['worker'] or told['pid']}" if kind == "exit" else "-".join([Path(file).stem, *rest, kind])
    name = re.sub(r"[^A-Za-z0-9._]+", "-", subject)[-_LONGEST_NAME:].strip("-.") or "test"
    for number in range(1, _MOST_NAMES):
        place = folder / (name if number == 1 else f"{name}-{number}")
        try:
            place.mkdir(mode=0o700)  # reserves the name
        except FileExistsError:
            continue
        return place
    raise FileExistsError(f"{folder}: too many bundles")


def _examine(told: Dict[str, Any], place: Path, limit: float) -> str:
    """Run ``examine`` with site-packages; return its output."""
    arguments = [str(told["pid"]), str(place), repr(limit)]
    words = programs.python("postmortem.pytesting.examine", arguments, flags=("-W", "ignore"), paths=told["paths"])
    with tempfile.TemporaryFile() as said:
        actions: List[Tuple[Any, ...]] = [
            (os.POSIX_SPAWN_DUP2, said.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, said.fileno(), 2),
        ]
        pid = programs.spawn("python", words, file_actions=actions, setpgroup=0)
        until = time.monotonic() + _EXAMINATION_S
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                signalling.send_to_group(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                break
            time.sleep(_LOOK_S)
        said.seek(0)
        return said.read().decode("utf-8", "replace")


def _keep(found: Answer, told: Dict[str, Any]) -> None:
    """Write the answer beside the capture for pytest-xdist's controller: the worker may have to be killed."""
    with contextlib.suppress(OSError):
        folder = Path(found.bundle or tempfile.mkdtemp(prefix="undiagnosed-", dir=told["dir"]))
        path = folder / answer.FILE
        temporary = path.with_name(f".{path.name}.part")
        descriptor = os.open(str(temporary), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write(found.encode())
        temporary.rename(path)


@contextlib.contextmanager
def _pending(told: Dict[str, Any]) -> Any:
    """Keep a marker file while an answer is being made, for which a controller waits."""
    path = Path(told["dir"]) / f".looking-{told['run']}-{told['worker']}"
    if told["worker"]:
        with contextlib.suppress(OSError):
            _folder(told)
            path.touch(0o600)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


# ---------------------------------------------------------------------- consequences


def _interrupted(shared: page.Page, told: Dict[str, Any], target: Target, serial: int) -> bool:
    """Return whether the hang has ended, by itself or by the signal.

    Also True if a debugger is attached, or the process has ended.
    """
    words = shared.words
    until = time.monotonic() + GRACE_S
    again = 0.0
    words[page.ORDER] = page.INTERRUPT
    while time.monotonic() < until:
        if shared.serial != serial or serial in (words[page.ENDED], words[page.DEBUGGED]) or not target.alive:
            return True
        if not target.catches(told["signal"]):
            return False  # the signal would end the process
        if time.monotonic() >= again:
            target.signal(told["signal"])
            again = time.monotonic() + _AGAIN_S
        time.sleep(_LOOK_S)
    return False


def _end_at_exit(shared: page.Page, told: Dict[str, Any], target: Target, found: Answer) -> None:
    """Report a hang at exit and end the process; all results are written already.

    A worker's hang is reported by its controller.
    """
    if not told["worker"]:
        _tell(f"{found.headline}. The process is ended", found)
        if told["xml"]:
            from . import junit  # noqa: PLC0415

            junit.add(Path(told["xml"]), found)
    _send_away(shared, told, target)


def _end(shared: page.Page, told: Dict[str, Any], target: Target, found: Answer) -> None:
    """End a process that cannot be interrupted: native code keeps the GIL, or a test swallows every exception."""
    if not told["worker"]:
        kept = ""
        if told["xml"] and told["journal"] is not None:
            from . import junit  # noqa: PLC0415

            kept = "; " + junit.rescue(told["journal"], Path(told["xml"]), found)
        _tell(f"{found.subject} cannot be interrupted: the test process is ended{kept}", found)
    _send_away(shared, told, target)


def _send_away(shared: page.Page, told: Dict[str, Any], target: Target) -> None:
    """Tell the process to end with pytest's own status; kill it if it does not."""
    shared.words[page.ORDER] = page.EXIT
    if target.catches(told["signal"]):
        target.signal(told["signal"])
        until = time.monotonic() + LAST_GRACE_S
        while target.alive and time.monotonic() < until:
            time.sleep(_LOOK_S)
    target.signal(signal.SIGKILL)


def _tell(sentence: str, found: Answer) -> None:
    """Print to the standard error stream with which pytest was started."""
    line = escaped(f"FAILED {found.nodeid} - {found.headline}")
    kept = escaped(f"The bundle is kept in {found.bundle}")
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"\npostmortem: {escaped(sentence)}\n{found.text.rstrip()}\n{line}\n{kept}\n")
        sys.stderr.flush()
