"""A process is stopped: by a signal, by its terminal, or by a tracer.

**What it looks like.** The kernel shows state T (stopped by a signal) or t (held by a debugger), in all or many observations: a
supervisor that alternately stops and continues a process, to slow it down, leaves it little time.

**Easily mistaken for** whatever the process was doing when it was stopped (a sleep, a select); `child-wait` of a parent that
waits for it; `frozen` and `throttled`, where a control group holds it.

**Why it hangs.** A stopped process gets no CPU until it receives SIGCONT or the tracer continues it. Its own code has no
influence on that.

**Remedy.** `kill -CONT PID`; fix what stops it. A background job that reads its terminal is stopped by the kernel (SIGTTIN):
give it `< /dev/null`.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from ....evidence import Process
from ....findings import Culprit, Template, Text
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.alike import PROCESSES_ARE, Alike, told_once
from ...facts.deeds import later, who_above
from ...facts.suspended import (
    Looks,
    awaited,
    below,
    matters,
    outermost,
    standing,
    stands_at,
    states,
    victims,
    waiting,
    waiting_lines,
)
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern
from .stoppers import TERMINAL, sends, signal_told, stoppers

PATTERN = Pattern(
    id="stopped",
    tier="outside",
    title="a process is stopped by a signal, a terminal or a tracer",
    explanation=(
        "A process can be stopped from outside: by the signals SIGSTOP and SIGTSTP (Ctrl-Z), by its terminal when a "
        "background job reads it, or by a debugger. Until it is continued (SIGCONT) it runs nothing at all, and everything "
        "that waits for it waits, too. The line at which it was stopped is not the cause."
    ),
    remedy=(
        "Continue it with kill -CONT PID, and find out what stops it. Under a debugger or strace: continue it, or detach. "
        "To slow a process down without stopping it, use a lower priority (nice) or a CPU quota."
    ),
    references=(
        "https://man7.org/linux/man-pages/man7/signal.7.html",
        "https://man7.org/linux/man-pages/man2/ptrace.2.html",
    ),
)

#: Least share of the observations; below it, the lost time is not the cause. Measured with 17 observations: 0.88 and 0.41
#: where a supervisor stops a process for 95 % and 50 % of the time. In the corpus no other process was seen in state T.
OFTEN = 0.3

_SUMMARY = Template("{process} is stopped{again}{by}")
_AGAIN = Template(" again and again ({share:.0%} of the time)")
_BY_TRACER = Template(" by its tracer, {program} ({pid})")
_BY_TERMINAL = Template(" by its terminal")
_FOUND = Template("{found} of {all:n observation}{over} found {process} stopped{used}")
_OVER = Template(" over {window:.1f} s")
_USED = Template("; it used {cpu:.1%} of a core")
_ON_PURPOSE = Template("nothing is known to wait for it, and others go on: it may be stopped on purpose")
_LET_GO = Template("Let process {tracer}, which traces PID {pid}, continue it or detach.")
_FOREGROUND = Template(
    "Bring PID {pid} to the foreground (fg), or start it with `< /dev/null` and its output in a file."
)
_CONTINUE = Template("Continue it with `kill -CONT {pid}`, and {then}")
_EVERY_WAY_OUT = Template("check {places}: is SIGCONT sent on every way out of there?")
_WHO_STOPS_IT = Template("find out what stops it.")
_PLACE = Template("{file}{line:+:@}")
_STATE = Template("the state of the process: a core file does not say whether it was stopped")
_NONE_STOPPED = Template("no process was seen stopped by a signal, its terminal or a debugger")


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each stopped process whose parent is not stopped."""
    seen = {process.pid: looks for process in view.processes for looks in [_looks(process)] if looks.found}
    if view.window is None and not seen and any(sends(t) for p in view.processes if not p.crash for t in p.threads):
        yield CannotTell((_STATE(),))
    found = []
    for process, others in outermost({pid: view.by_pid[pid] for pid in seen}):
        looks = seen[process.pid]
        agents = waiting(view, {process.pid, *(other.pid for other in others)})
        lines, who = stoppers(view, process)
        match = _match(view, process, others, looks, agents, lines, who)
        key = (tuple((c.file, c.line) for c in lines) or process.pid, process.ppid)
        found.append((not agents, Alike(key, clauses.process(process), match)))
    if not found and view.window is not None:
        yield No(_NONE_STOPPED())
    yield from told_once((alike for _alone, alike in sorted(found, key=lambda one: one[0])), PROCESSES_ARE)


def _looks(process: Process) -> Looks:
    """Return the observations of a stop over the window; without a window, the state shown by /proc."""
    looks = states(process.threads, "Tt")
    if not looks.all and process.state is not None:
        return Looks(int(process.state in "Tt"), 1)
    return looks


def _match(
    view: View,
    process: Process,
    others: List[Process],
    looks: Looks,
    agents: List[Agent],
    lines: Tuple[Culprit, ...],
    who: List[Text],
) -> Match:
    whole = looks.found == looks.all
    rhythm = not whole and looks.share >= OFTEN
    sure = (whole and matters(view, process, agents)) or rhythm
    name, cpu = clauses.process(process), view.cpu(process)
    over = _OVER(window=view.window) if view.window else None
    used = _USED(cpu=cpu) if cpu is not None else None
    facts = [
        _FOUND(found=looks.found, all=looks.all, over=over, process=name, used=used),
        *signal_told(process),
        *who,
        *stands_at(process),
        *awaited(agents),
        *below(others),
    ]
    continuing = who_above(view, process, "continues") if whole else []
    facts += later("continues", continuing)
    sure = sure and not continuing
    if whole and not sure and not continuing:
        facts.append(_ON_PURPOSE())
    return Match(
        confidence=("proven" if whole and view.window else "likely") if sure else "possible",
        summary=_SUMMARY(process=name, again=None if whole else _AGAIN(share=looks.share), by=_by(process)),
        evidence=tuple(facts),
        culprits=lines or waiting_lines(view, agents) or standing(view, process),
        victims=victims(view, agents),
        remedy=_remedy(process, lines),
        pid=process.pid,
    )


def _by(process: Process) -> Optional[Text]:
    if process.tracer:
        return _BY_TRACER(program=process.tracer_name or "process", pid=process.tracer)
    return _BY_TERMINAL() if process.stopped_by in TERMINAL else None


def _remedy(process: Process, lines: Tuple[Culprit, ...]) -> Text:
    if process.tracer:
        return _LET_GO(tracer=process.tracer, pid=process.pid)
    if process.stopped_by in TERMINAL:
        return _FOREGROUND(pid=process.pid)
    places = tuple(_PLACE(file=line.file.rsplit("/", 1)[-1], line=line.line) for line in lines[:3])
    return _CONTINUE(pid=process.pid, then=_EVERY_WAY_OUT(places=places) if places else _WHO_STOPS_IT())
