"""A bundle's raw facts and cores → evidence."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from ..discretion.whole import discreet
from ..errors import NotABundle
from ..evidence import Evidence, Timings, Trigger
from .connections import Connections
from .cores import How
from .descriptors import Descriptors
from .processes import read_processes
from .raw import Raw, kept_root, tids
from .shortcomings import end_gaps, step_gaps
from .sources import read_sources
from .surroundings import Surroundings
from .window import number, read_json, read_samples, read_window


def from_bundle(
    folder: Path,
    *,
    exe: Optional[Path] = None,
    sysroot: Optional[Path] = None,
    tool_version: str = "",
    progress: Callable[[str], None] = lambda text: None,
    with_locals: bool = False,
    until: Optional[float] = None,
) -> Evidence:
    """Evidence from what ``capture`` wrote into a folder, complete or cut short. Raises NotABundle.

    ``until``: in time.monotonic() seconds, when a verdict on it is wanted; what there is no time for becomes a gap.
    """
    began = time.monotonic()
    manifest = read_json(folder / "manifest.json")
    if not isinstance(manifest, dict):
        if not (folder / "raw").is_dir():
            raise NotABundle(f"{folder} has no readable manifest.json", "name a bundle that `postmortem capture` wrote")
        manifest = {}
    facts = {pid: read_facts(folder, pid) for pid in _pids(folder, manifest)}
    connections = Connections.read(folder, facts)
    raws = {pid: raw_facts(folder, pid, known, connections) for pid, known in facts.items()}
    processes, gaps = read_processes(folder, raws, How(exe, sysroot, with_locals, progress), until)
    noted = manifest.get("timings")
    timings: Dict[str, Any] = noted if isinstance(noted, dict) else {}
    kept = {pid: kept_root(folder, known) for pid, known in facts.items()} if sysroot is None else {}
    roots = {pid: str(root) for pid, root in kept.items() if root is not None}
    sources = read_sources(processes, str(sysroot) if sysroot else "", roots)
    seconds = [raw.window.seconds for raw in raws.values() if raw.window.seconds]
    around = Surroundings(folder / "raw" / "proc" / "machine.json")
    found = Evidence(
        trigger=_trigger(manifest),
        processes=tuple(around.completed(p, raws[p.pid].window, raws[p.pid].process) for p in processes),
        gaps=(*end_gaps(manifest), *step_gaps(manifest), *gaps),
        sources=sources.lines,
        loops=sources.loops,
        branches=sources.branches,
        timings=Timings(number(timings.get("observe_s")), number(timings.get("pause_s")),
                        round(time.monotonic() - began, 3)),
        window_s=max(seconds) if seconds else None,
        machine=around.machine(),
        tool_version=tool_version,
        checkout=_checkout(manifest),
    )  # fmt: skip
    return discreet(found)


def _checkout(manifest: Dict[str, Any]) -> Optional[str]:
    found = manifest.get("checkout")
    return found if isinstance(found, str) and found.startswith("/") else None


def _pids(folder: Path, manifest: Dict[str, Any]) -> List[int]:
    """The tree's processes, the root first."""
    listed = manifest.get("processes")
    pids = [p for p in listed if isinstance(p, int) and p > 0] if isinstance(listed, list) else []
    pids += sorted(int(entry.name) for entry in (folder / "raw" / "proc").glob("*") if entry.name.isdigit())
    pids += sorted(int(entry.stem) for entry in (folder / "raw" / "cores").glob("*.core") if entry.stem.isdigit())
    root = manifest.get("root_pid")
    return sorted(dict.fromkeys(pids), key=lambda pid: pid != root)


def read_facts(folder: Path, pid: int) -> Dict[str, Any]:
    """What a capture noted of a process in ``process.json``; empty when it is missing or damaged."""
    facts = read_json(folder / "raw" / "proc" / str(pid) / "process.json")
    return facts if isinstance(facts, dict) else {}


def kept_root_of(folder: Path, core: Path) -> Optional[Path]:
    """Where a bundle has the files for one of its cores; None where this machine's own serve, or none are there."""
    return kept_root(folder, read_facts(folder, int(core.stem))) if core.stem.isdigit() else None


def raw_facts(
    folder: Path, pid: int, facts: Dict[str, Any], connections: Connections, with_samples: bool = True
) -> Raw:
    """All that a capture noted of a process; what is missing or damaged is empty."""
    fds, outer = facts.get("fds"), tids(facts)
    samples = read_samples(folder / "raw" / "pyspy" / f"{pid}.chrometrace.json") if with_samples else {}
    return Raw(
        facts,
        read_window(folder / "raw" / "proc" / str(pid) / "window.json"),
        {outer.get(tid, tid): seen for tid, seen in samples.items()},
        Descriptors(fds if isinstance(fds, dict) else {}, connections.net, pid, connections) if facts else None,
    )


def raw_of(folder: Path, pid: int) -> Raw:
    """What there is of one process before the rest is written, without what py-spy saw."""
    facts = read_facts(folder, pid)
    return raw_facts(folder, pid, facts, Connections({}, {pid: facts}), False)


def _trigger(manifest: Dict[str, Any]) -> Trigger:
    trigger = manifest.get("trigger")
    if not isinstance(trigger, dict):
        return Trigger("timeout")
    name = trigger.get("signal")
    return Trigger(str(trigger.get("kind")), number(trigger.get("seconds")), str(name) if name else None)
