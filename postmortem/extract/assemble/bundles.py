"""Evidence from a bundle's raw facts and cores."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, get_args

from ...bundle import pids_of
from ...errors import NotABundle
from ...evidence import Evidence, Timings, Trigger
from ...evidence.vocabulary import TriggerKind
from ...foreign.held import Folder
from ...foreign.processfiles import Shelves, below
from ...redaction.evidence import discreet
from ..recorded import documents
from ..recorded.clocks import read_clocks
from ..recorded.connections import Connections
from ..recorded.raw import Raw, tids
from ..recorded.shapes import number, pid_of, read_json
from ..recorded.shortcomings import end_gaps, step_gaps
from ..recorded.surroundings import Surroundings
from ..recorded.window import read_samples, read_window
from ..sourcecode.sources import read_sources
from ..waits.descriptors import Descriptors
from .how import How
from .processes import Cores, read_processes


def from_bundle(
    folder: Folder,
    place: Path,
    how: How = How(),  # noqa: B008 - a tuple
    *,
    owner: Optional[int] = None,
    tool_version: str = "",
    until: Optional[float] = None,
) -> Evidence:
    """Return the evidence of a capture, complete or cut short.

    - ``place``: path of the bundle, for gdb and messages
    - ``owner``: user who owns it
    - ``until``: deadline for the verdict in time.monotonic() seconds; what there is no time for becomes a gap

    Raises NotABundle.
    """
    began = time.monotonic()
    manifest = read_json(folder, "manifest.json")
    if not isinstance(manifest, dict):
        if not folder.has("raw"):
            raise NotABundle(f"{place} has no readable manifest.json", "name a bundle that `postmortem capture` wrote")
        manifest = {}
    facts = {pid: read_facts(folder, pid) for pid in _pids(folder, manifest)}
    connections = Connections.read(folder, facts)
    raws = {pid: raw_facts(folder, pid, known, connections) for pid, known in facts.items()}
    with Shelves(below(how.sysroot, folder), owner=folder.owner if owner is None else owner) as shelves:
        files = {pid: shelves.of(known) for pid, known in facts.items()}
        processes, gaps = read_processes(Cores(folder, place, files), raws, how, until)
        sources = read_sources(processes, files.__getitem__)
    noted = manifest.get("timings")
    timings: Dict[str, Any] = noted if isinstance(noted, dict) else {}
    seconds = [raw.window.seconds for raw in raws.values() if raw.window.seconds]
    around = Surroundings(folder)
    found = Evidence(
        trigger=_trigger(manifest),
        processes=tuple(around.completed(p, raws[p.pid].window, raws[p.pid].process) for p in processes),
        gaps=(*end_gaps(manifest), *step_gaps(manifest), *gaps, *sources.gaps),
        sources=sources.lines,
        loops=sources.loops,
        branches=sources.branches,
        timings=Timings(
            number(timings.get("observe_s")), number(timings.get("pause_s")), round(time.monotonic() - began, 3)
        ),
        window_s=max(seconds) if seconds else None,
        machine=around.machine(),
        tool_version=tool_version,
        checkout=_checkout(manifest),
    )
    return discreet(found)


def _checkout(manifest: Dict[str, Any]) -> Optional[str]:
    found = manifest.get("checkout")
    return found if isinstance(found, str) and found.startswith("/") else None


def _pids(folder: Folder, manifest: Dict[str, Any]) -> List[int]:
    """Return the tree's PIDs, the root first."""
    root = manifest.get("root_pid")
    return sorted(pids_of(folder, manifest), key=lambda pid: pid != root)


def cores_of(folder: Folder) -> List[int]:
    """Return the PIDs of processes with cores."""
    stems = [name[: -len(".core")] for name in folder.names("raw/cores") if name.endswith(".core")]
    return sorted(pid for pid in map(pid_of, stems) if pid is not None)


@contextlib.contextmanager
def open_cores(folder: Folder, place: Path, owner: int, sysroot: Optional[Path]) -> Iterator[Cores]:
    """Open the cores of a bundle with the files of their processes."""
    with Shelves(below(sysroot, folder), owner=owner) as shelves:
        yield Cores(folder, place, {pid: shelves.of(read_facts(folder, pid)) for pid in cores_of(folder)})


def read_facts(folder: Folder, pid: int) -> Dict[str, Any]:
    """Return a process's ``process.json``; empty if missing or damaged."""
    return documents.read(folder, f"raw/proc/{pid}/process.json", documents.PROCESS)


def raw_facts(
    folder: Folder, pid: int, facts: Dict[str, Any], connections: Connections, with_samples: bool = True
) -> Raw:
    """Return all captured facts of a process; whatever is missing or damaged is empty."""
    fds, outer = facts.get("fds"), tids(facts)
    samples = read_samples(folder, pid) if with_samples else {}
    return Raw(
        facts,
        read_window(folder, pid),
        {outer.get(tid, tid): seen for tid, seen in samples.items()},
        Descriptors(fds if isinstance(fds, dict) else {}, connections.net, pid, connections) if facts else None,
        read_clocks(folder, pid, facts.get("start_ticks")),
    )


def raw_of(folder: Folder, pid: int) -> Raw:
    """Return the facts of one process during its capture, without py-spy's samples."""
    facts = read_facts(folder, pid)
    return raw_facts(folder, pid, facts, Connections({}, {pid: facts}), False)


#: Kinds by name; an unknown name of a damaged or hostile bundle becomes "pid", which implies no deadline.
_TRIGGERS: Dict[str, TriggerKind] = {kind: kind for kind in get_args(TriggerKind)}


def _trigger(manifest: Dict[str, Any]) -> Trigger:
    trigger = manifest.get("trigger")
    if not isinstance(trigger, dict):
        return Trigger("timeout")
    name = trigger.get("signal")
    kind = trigger.get("kind")
    known = _TRIGGERS.get(kind, "pid") if isinstance(kind, str) else "pid"
    return Trigger(known, number(trigger.get("seconds")), str(name) if name else None)
