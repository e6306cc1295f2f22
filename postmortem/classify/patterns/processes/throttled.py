"""The control group has used up its CPU quota.

**What it looks like.** The process gets less CPU than it could use: in most of the quota's periods (usually of 0.1 s) the
quota was used up early, and then all threads of the group stand still until the next period.

**Easily mistaken for** `python-busy-loop` and `gil-contention`: a healthy computation that would be over by now at full speed; a
machine whose CPUs are taken by others.

**Why it is slow.** A container with `cpus: 0.1` has a tenth of a CPU. With many threads the quota is used up in the first
milliseconds of each period, and every thread waits for the rest of it, heartbeats and health checks included.

**Remedy.** A larger quota, fewer threads and workers (derived from the quota, not from `os.cpu_count()`), or less work.
"""

from __future__ import annotations

from typing import Counter, Dict, Iterator, List, Tuple

from ....evidence import ControlGroup, Process, PythonFrame, Thread
from ....findings import Template, Text
from ...facts import clauses
from ...facts.knowledge import is_library
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern

PATTERN = Pattern(
    id="throttled",
    tier="outside",
    title="the CPU quota of its control group is used up",
    explanation=(
        "A container or a service may be given a share of the CPUs: so many milliseconds in each period, usually of 100 ms. "
        "When they are used up, the kernel lets none of its threads run until the next period begins. The program is not "
        "stuck, but slowed down: the more CPU it wants beyond the quota, the slower it is."
    ),
    remedy=(
        "Raise the quota (docker --cpus, resources.limits.cpu, CPUQuota=), or use less: start as many threads and workers as "
        "the quota has CPUs, not as many as the machine has."
    ),
    needs=("window",),
    references=(
        "https://docs.kernel.org/scheduler/sched-bwc.html",
        "https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu",
    ),
)  # fmt: skip

#: Least share of the quota's periods. One loop under a quota of 0.1 CPUs used it up in every period, also at a load of 6 on two
#: CPUs; under 0.5 and 0.9 in none to half of them, as long as that load left it less than the quota.
OFTEN = 0.5
#: Share of the quota that was used: 1.0 if it is the limit (at load 8 too), 0.78 if the machine is; or share of the periods.
USED, ALWAYS = 0.9, 0.9
#: Largest share of the CPU wanted that it got: a loop under 0.1 gets 0.10. Above it, the quota costs less than half of the time.
GOT = 0.6
#: Cores wanted by the whole group: below that the quota delays nothing.
WANTS = 0.2
STABLE, _CALLERS = 0.9, 3  # share of a thread's samples; number of lines

_SUMMARY = Template(
    "{process} is slowed down: the quota of {quota:g} CPUs of its control group was used up in {throttled:.0%} of the periods"
    "{frames:+; it computes at @}"
)
_USED_UP = Template(
    "in {throttled:.0%} of the periods of the window the quota of {quota:g} CPUs of {group} was used up early{lost}"
)
_LOST = Template("; its threads were held back for {seconds:.2f} s in all")
_WAITED = Template(
    "{processes} used {got:.2f} cores ({share:.0%} of what was wanted), and waited for {lacked:.2f} more while ready to run"
)
_WANTED = Template("{count:n thread} of {process} wanted to run: {threads}")
_SLOWED = Template("this is not where most of the time goes: the program is slowed down, not stuck")
_RAISE = Template(
    "Raise the quota of {group} ({quota:g} CPUs{machine:+, while os.cpu_count() may say @}): docker --cpus, "
    "resources.limits.cpu, CPUQuota=; or start no more threads and workers than it has CPUs, and allow for the time that the "
    "work needs."
)
_NOT_USED_UP = Template("the quota of {quota:g} CPUs of {group} was not used up")
_WINDOW = Template("an observation window: how often the CPU quota was used up")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each control group with a CPU quota."""
    found: List[Tuple[Process, ControlGroup, float, float]] = []
    for process in view.processes:
        group = process.cgroup
        if group is None or group.throttled is None or group.cpu_quota is None:
            if view.window is None and group is not None and group.cpu_quota is not None:
                yield CannotTell((_WINDOW(),))
            continue
        got, wanted = view.cpu(process), view.demand(process)
        if not group.throttled or got is None or wanted is None:
            yield No(_NOT_USED_UP(quota=group.cpu_quota, group=group.path))
        else:
            found.append((process, group, got, wanted))
    found.sort(key=lambda one: -one[3])
    for path in dict.fromkeys(group.path for _p, group, _got, _wanted in found):
        several = [one for one in found if one[1].path == path]
        if sum(wanted for _p, _group, _got, wanted in several) >= WANTS:
            yield _match(view, several)


def _match(view: View, several: List[Tuple[Process, ControlGroup, float, float]]) -> Match:
    """Return one match for all processes of a group, which share its quota."""
    process, group, _got, _wanted = several[0]
    got, wanted = sum(one[2] for one in several), sum(one[3] for one in several)
    throttled, quota = group.throttled or 0.0, group.cpu_quota
    binds = throttled >= ALWAYS or (throttled >= OFTEN and got >= USED * (quota or 0.0))
    sure = binds and got <= GOT * wanted
    lost = _LOST(seconds=group.throttled_s) if group.throttled_s else None
    who = tuple(clauses.process(one[0]) for one in several[:4])
    facts = [
        _USED_UP(throttled=throttled, quota=quota, group=group.path, lost=lost),
        _WAITED(processes=who, got=got, lacked=wanted - got, share=got / wanted),
        *(fact for one in several[:4] for fact in _busiest(view, one[0])),
    ]
    if not sure:
        facts.append(_SLOWED())
    frames = [(p, t, f) for p, _g, _got, _w in several[:4] for t, f in _hot(view, p)]
    places = clauses.unlike(f for _p, _t, f in frames)[:3]
    places_of = {
        (at.file, at.line): (p, t, at) for p, t, f in reversed(frames) for at in reversed(view.loops_around([f]))
    }
    culprits = [view.culprit(p, at, t) for p, t, at in reversed(list(places_of.values()))]
    return Match(
        confidence="likely" if sure else "possible",
        summary=_SUMMARY(process=clauses.process(process), quota=quota, throttled=throttled, frames=places),
        evidence=tuple(facts),
        culprits=tuple(culprits[:12]),
        victims=tuple(view.victim(p, m) for p, _g, _got, _w in several[:6] for m in [view.main(p)] if m is not None),
        remedy=_remedy(process, group),
        pid=process.pid,
    )


def _hot(view: View, process: Process) -> List[Tuple[Thread, PythonFrame]]:
    """Return the lines that were on the stack all the time, for the threads that want most CPU; else the innermost line."""
    threads = sorted(process.threads, key=lambda t: -(view.wanted_share(t) or 0.0))
    wanting = [t for t in threads if (view.wanted_share(t) or 0.0) >= WANTS / 2][:4]
    return [(t, f) for t in wanting for f in _kept(view, t) or (view.hot_frame(t),) if f is not None]


def _kept(view: View, thread: Thread) -> Tuple[PythonFrame, ...]:
    """Return the program's functions in nearly every sample, innermost first, each at its most frequent line."""
    seen: Dict[Tuple[str, str], Counter[PythonFrame]] = {}
    total = 0
    for count, frames in view.samples(thread):
        total += count
        own = {(f.file, f.function): f for f in reversed(frames) if not is_library(f)}
        for place, frame in reversed(list(own.items())):
            seen.setdefault(place, Counter())[frame] += count
    kept = [lines for lines in seen.values() if sum(lines.values()) >= STABLE * total]
    return tuple(lines.most_common(1)[0][0] for lines in kept[:_CALLERS])


def _busiest(view: View, process: Process) -> List[Text]:
    """Return a text on the threads that wanted to run, if there are several."""
    wanting = [t for t in process.threads if (view.wanted_share(t) or 0.0) >= WANTS / 2]
    if len(wanting) < 2:
        return []
    threads = tuple(map(clauses.named, wanting[:6]))
    return [_WANTED(count=len(wanting), process=clauses.process(process), threads=threads)]


def _remedy(process: Process, group: ControlGroup) -> Text:
    return _RAISE(group=group.path, quota=group.cpu_quota, machine=process.cpus_allowed)
