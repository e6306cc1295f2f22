"""The end of a run: making and filling the bundle, ending the tree, and signals meanwhile."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import signal
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from ... import errors
from ...bundle import Bundle, Step, refuse_if_taken
from .. import fallbacks
from ..options import MOST_DESCENDANTS, Options
from ..procfs import cgroups, parsers
from ..steps import Session, members_of, processes, to_end
from . import termination
from .command import ENDING, ONE_WISH_S, Command, Watch

if TYPE_CHECKING:
    from ..readers import Reader

Say = Callable[[str], None]

_MOST_TAKEN = 10_000
#: Number of names that are tried when the default one is taken.
_MOST_GUESSED = 10
#: Pid of the first process of a pid namespace, which adopts all orphans.
INIT = 1

_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
#: A cluster of options: the first one that takes a value takes the rest of the word.
_WITH_VALUE = re.compile(r"-[^-cmWX]*([cmWX])(.*)", re.DOTALL)


def free_number(options: Options, first: int) -> int:
    """Return the first number from ``first`` on that is not taken in -o DIR."""
    if options.output is not None:
        for number in range(first, first + _MOST_TAKEN):
            try:
                refuse_if_taken(Path(options.output) / str(number))
            except errors.CaptureFailed:
                continue
            return number
    return first


def create(command: Command, options: Options, number: Optional[int], say: Say) -> Bundle:
    """Create the bundle; ``number`` is its own among several. Raises CaptureFailed.

    -o DIR was free when the command began. If it has been taken since, or its disk is full or read-only, the bundle
    goes to the temporary folder instead of being lost. A default name can be guessed, so somebody may have taken it:
    then a number is appended.
    """
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    subject = _plain(what_it_runs(options.command)) if options.command else program(command, options)
    name = f"postmortem-{subject}-{now}-{command.pid}" + ("" if number is None else f"-{number}")
    places = [Path(name), *(Path(f"{name}.{again}") for again in range(2, _MOST_GUESSED))]
    if options.output is not None:
        places = [Path(options.output) if number is None else Path(options.output) / str(number)]
    refused = None
    for place in places:
        try:
            return Bundle.create(place)
        except errors.CaptureFailed as exc:
            refused = refused or exc
            if not os.path.lexists(place):
                break
    assert refused is not None
    with contextlib.suppress(OSError):
        bundle = Bundle.create(Path(tempfile.mkdtemp(prefix="postmortem-")) / name)
        say(f"{refused}; writing to the temporary folder instead")
        return bundle
    raise refused


def fill(bundle: Bundle, command: Command, options: Options, reader: Reader, say: Say, tell: Say) -> None:
    """Capture into the bundle; ``tell`` is called with each step. Raises CaptureFailed when it cannot be written."""
    say(f"{_reason(command, options)} into {bundle.path}")
    if isinstance(command, Watch):
        _leave_descendants_out(command, options, bundle, say)
    if not command.goes_on:  # on demand the diagnosis has a budget of its own
        options = _bounded(options, bundle, say)
    try:
        Session(command, options, bundle, reader, tell).capture()
    except OSError as exc:
        raise errors.CaptureFailed(f"the bundle cannot be written: {exc}", "choose another place with -o DIR") from None
    if bundle.unsaved is not None:
        say(f"{bundle.path} is not complete: {bundle.unsaved.strerror}")


def _leave_descendants_out(command: Watch, options: Options, bundle: Bundle, say: Say) -> None:
    """Limit a capture of init or of a process with many descendants to that process, unless --tree was given."""
    command.alone = False
    count = len(members_of(command)) - 1
    if options.tree or not (count > MOST_DESCENDANTS or (count > 0 and command.pid == INIT)):
        return
    command.alone = True
    crowd = "every process descends from it" if command.pid == INIT else f"it has {count} descendants"
    say(f"capturing process {command.pid} alone, since {crowd}: --tree takes all of them")
    step = Step("processes", "the tree")
    step.leave_out(
        "descendants-left-out",
        f"process {command.pid} was captured without its descendants: {processes(count)}",
        f"postmortem capture --pid {command.pid} --tree takes all of them",
        processes=count,
    )
    bundle.record(step)


def _bounded(options: Options, bundle: Bundle, say: Say) -> Options:
    """Limit --observe to half of --budget, which leaves time for the diagnosis."""
    most = options.budget / 2
    if options.observe <= most:
        return options
    step = Step("observe", "the tree")
    say(f"watching for {most:g} s, half of --budget, instead of --observe {options.observe:g}")
    said = f"it was watched for {most:g} s, not {options.observe:g} s"
    step.leave_out("window-shortened", said, "use a --budget of at least twice --observe", seconds=most)
    bundle.record(step)
    options = copy.copy(options)
    options.observe = most
    return options


def _reason(command: Command, options: Options) -> str:
    """Return why the capture begins, as a message."""
    trigger: Dict[str, Any] = command.trigger or {}
    name = f"process {command.pid}" if isinstance(command, Watch) else program(command, options)
    if command.cancelled is not None:
        return f"{trigger.get('signal')}: capturing {name} before it ends"
    reasons = {
        "timeout": f"{name} has not ended in time: capturing",
        "stall": f"{name} has made no progress for {trigger.get('seconds') or 0:g} s: capturing",
        "signal": f"{trigger.get('signal')}: capturing {name}",
    }
    return reasons.get(trigger.get("kind", ""), f"{name}: capturing")


def end(command: Command, options: Options, bundle: Optional[Bundle], say: Say) -> None:
    """End the command's tree, and record how that went if there is a bundle."""
    if bundle is not None and options.core != "none":
        with contextlib.suppress(OSError):
            fallbacks.kernel_cores(bundle, command, lambda: to_end(command))
    began = time.monotonic()
    left = termination.end_tree(command, lambda: to_end(command), options.signal, options.kill_after)
    if command.terminal is not None:
        command.terminal.take_back()
    step = Step("end", "the tree")
    step.seconds = time.monotonic() - began
    if left:
        said = f"{'these processes' if len(left) > 1 else 'this process'} did not end: {', '.join(map(str, left))}"
        step.fail("still-running", said, _remedy(left[0]), pids=list(left))
        say(f"{step.error}; {step.remedy}")
    if bundle is not None:
        with contextlib.suppress(OSError):
            bundle.record(step)


def _remedy(pid: int) -> str:
    """Return a remedy for a process that no signal ends."""
    held = cgroups.freezer(pid, cgroups.own_mounts())
    return f"echo THAWED > {held}/freezer.state" if held else f"look at ps -o pid,stat,wchan,cmd {pid}"


def note_unreadable(bundle: Bundle, pids: List[int]) -> None:
    """Record the processes whose writes ``--stall`` could not count."""
    if pids:
        step = Step("stall", f"process {pids[0]}" if len(pids) == 1 else "the tree")
        step.fail(
            "writes-uncounted",
            f"only CPU time could be counted, not writes, of process{'es' if len(pids) > 1 else ''} {', '.join(map(str, pids))}",
            "run postmortem as root to judge other users' processes",
            pids=list(pids),
        )
        bundle.record(step)


def what_it_runs(words: List[str]) -> str:
    """Return the program's name for a bundle; for a Python command that of its module or script, if any."""
    program = Path(words[0]).name
    if not _PYTHON.fullmatch(program):
        return program
    rest = iter(words[1:])
    for word in rest:
        taking = _WITH_VALUE.fullmatch(word)
        if taking:
            value = taking.group(2) or next(rest, "")
            if taking.group(1) in "cm":
                return value if value and taking.group(1) == "m" else program
        elif word == "--check-hash-based-pycs":
            next(rest, "")
        elif not word.startswith("-"):
            return Path(word).stem
    return program


def program(command: Command, options: Options) -> str:
    """Return the program's name for a message; ``what_it_runs`` is for names of bundles."""
    if options.command:
        name = Path(options.command[0]).name
    else:
        try:
            name = parsers.text(parsers.read(f"/proc/{command.pid}/comm")).strip()
        except OSError:
            name = "process"
    return _plain(name)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", name)[:64].lstrip("-.") or "command"


def attend_to_signals(command: Command, grace_s: float = 0.0) -> None:
    """Restore Python's signal handling: ending signals raise KeyboardInterrupt, the first one ``grace_s`` later.

    A pending one raises it here, so call this inside of the ``try``. Several within ``ONE_WISH_S`` count as one. The
    signal that requests a capture is ignored from now on: a request that comes too late must not kill us.
    """
    heard: List[float] = []

    def interrupt(number: int, _frame: object) -> None:
        now = time.monotonic()
        if number != signal.SIGALRM and heard and now - heard[-1] <= ONE_WISH_S:
            return
        heard.append(now)
        if grace_s and len(heard) == 1:
            signal.setitimer(signal.ITIMER_REAL, grace_s)
        else:
            raise KeyboardInterrupt(number)

    if command.demand is not None:
        signal.signal(command.demand, signal.SIG_IGN)
    if grace_s:
        signal.signal(signal.SIGALRM, interrupt)
    for number in ENDING - {command.demand}:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup's
            signal.signal(number, interrupt)
    signal.pthread_sigmask(signal.SIG_SETMASK, command.original_mask)


def ignore_signals() -> None:
    """Block the ending signals: there is nothing left to interrupt."""
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
