"""The control group of a process is frozen.

**What it looks like.** No thread of it runs, wakes or answers, not even to a debugger; the kernel reports that the group
is frozen (`cgroup.freeze`, or in version 1 `freezer.state`).

**Easily mistaken for** whatever its threads were doing; `disk-wait`, because version 1 shows frozen tasks in state D; `stopped`.

**Why it hangs.** The whole group was paused: by `docker pause`, `systemctl freeze`, a checkpoint or a snapshot that did not
end, a container runtime that died half-way.

**Remedy.** Thaw it: `docker unpause`, `systemctl thaw`, or write 0 to `cgroup.freeze` (THAWED to `freezer.state`).
"""

from __future__ import annotations

from typing import Iterator, List

from ....evidence import Process
from ....findings import Template
from ...facts import clauses
from ...facts.suspended import awaited, below, callers, outermost, stands_at, victims, waiting, waiting_lines
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="frozen",
    tier="outside",
    title="the control group of a process is frozen",
    explanation=(
        "Linux keeps processes together in control groups, those of a container for instance. A group can be frozen: then "
        "none of its processes runs a single instruction until the group is thawed. Their code has no part in this."
    ),
    remedy="Thaw the group (docker unpause, systemctl thaw), and find out what froze it: a pause, a snapshot, a checkpoint.",
    references=(
        "https://docs.kernel.org/admin-guide/cgroup-v2.html#core-interface-files",
        "https://docs.kernel.org/admin-guide/cgroup-v1/freezer-subsystem.html",
    ),
)

#: CPU in cores above which a process was thawed for a while; a frozen process uses none at all.
_RAN = 0.001

_SUMMARY = Template("{process} is frozen, with its whole control group {group}")
_NOT_FROZEN = Template("no control group (of a container or a systemd unit) that these processes are in is frozen")
_KERNEL_SAYS = Template("at the end of the window the kernel reported that the control group {group} is frozen")
_RAN_BEFORE = Template("{process} still ran during the window: it was frozen in the course of it")
_DID_NOT_RUN = Template("{process} did not run at all in {window:.1f} s")
_THAW = Template(
    "Thaw the control group {group}: docker unpause, systemctl thaw, `echo 0 > cgroup.freeze` in its directory, or in "
    "version 1 `echo THAWED > freezer.state`; then find out what froze it."
)


def match(view: View) -> Iterator[Answer]:
    """Yield a match for each frozen process whose parent is not frozen."""
    frozen = {p.pid: p for p in view.processes if p.cgroup is not None and p.cgroup.frozen}
    if not frozen and any(p.cgroup is not None and p.cgroup.frozen is False for p in view.processes):
        yield No(_NOT_FROZEN())
    for process, others in outermost(frozen):
        yield _match(view, process, others)


def _match(view: View, process: Process, others: List[Process]) -> Match:
    group = process.cgroup.path if process.cgroup is not None else "?"
    agents = waiting(view, {process.pid, *(other.pid for other in others)})
    ran, name = (view.cpu(process) or 0.0) > _RAN, clauses.process(process)
    facts = [_KERNEL_SAYS(group=group)]
    if ran:
        facts.append(_RAN_BEFORE(process=name))
    elif view.window is not None and view.cpu(process) is not None:
        facts.append(_DID_NOT_RUN(process=name, window=view.window))
    facts += [*stands_at(process), *below(others), *awaited(agents)]
    return Match(
        confidence="likely" if ran else "proven",
        summary=_SUMMARY(process=name, group=group),
        evidence=tuple(facts),
        culprits=callers(view, process) or waiting_lines(view, agents),
        victims=victims(view, agents),
        remedy=_THAW(group=group),
        pid=process.pid,
    )
