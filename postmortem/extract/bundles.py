"""A bundle's raw facts and cores → evidence."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..cores.executable import take_executable
from ..errors import NotABundle, PostmortemError
from ..evidence import Evidence, Gap, Process, PythonFrame, Thread, Timings, Trigger, Wait
from ..evidence import replace as changed
from ..memory import Segments
from . import waits
from .cores import How, open_core, read_core
from .descriptors import DescriptorBook, Descriptors
from .process import Raw, last_call
from .sources import read_sources
from .window import assigned, counters, number, read_json, read_samples, read_window


def from_bundle(
    folder: Path,
    *,
    exe: Optional[Path] = None,
    sysroot: Optional[Path] = None,
    tool_version: str = "",
    progress: Callable[[str], None] = lambda text: None,
    with_locals: bool = False,
) -> Evidence:
    """Evidence from what ``capture`` wrote into a folder, complete or cut short. Raises NotABundle."""
    began = time.monotonic()
    manifest = read_json(folder / "manifest.json")
    if not isinstance(manifest, dict):
        if not (folder / "raw").is_dir():
            raise NotABundle(f"{folder} has no readable manifest.json", "name a bundle that `postmortem capture` wrote")
        manifest = {}
    raws = {pid: raw_facts(folder, pid) for pid in _pids(folder, manifest)}
    gaps = _step_gaps(manifest)
    how = How(exe, sysroot, with_locals, progress)
    processes: List[Process] = []
    for pid, raw in raws.items():
        progress(f"process {pid}")
        process, more = _process(folder, pid, raw, how)
        processes.append(process)
        gaps += more
    noted = manifest.get("timings")
    timings: Dict[str, Any] = noted if isinstance(noted, dict) else {}
    sources = read_sources(processes, str(sysroot) if sysroot else "")
    seconds = [raw.window.seconds for raw in raws.values() if raw.window.seconds]
    return Evidence(
        trigger=_trigger(manifest),
        processes=tuple(processes),
        gaps=tuple(gaps),
        sources=sources.lines,
        loops=sources.loops,
        timings=Timings(number(timings.get("observe_s")), number(timings.get("pause_s")),
                        round(time.monotonic() - began, 3)),
        window_s=max(seconds) if seconds else None,
        tool_version=tool_version,
    )  # fmt: skip


def _pids(folder: Path, manifest: Dict[str, Any]) -> List[int]:
    """The tree's processes, the root first."""
    listed = manifest.get("processes")
    pids = [p for p in listed if isinstance(p, int) and p > 0] if isinstance(listed, list) else []
    pids += sorted(int(entry.name) for entry in (folder / "raw" / "proc").glob("*") if entry.name.isdigit())
    pids += sorted(int(entry.stem) for entry in (folder / "raw" / "cores").glob("*.core") if entry.stem.isdigit())
    root = manifest.get("root_pid")
    return sorted(dict.fromkeys(pids), key=lambda pid: pid != root)


def raw_facts(folder: Path, pid: int, with_samples: bool = True) -> Raw:
    """What a capture noted of a process; what is missing or damaged is empty."""
    facts = read_json(folder / "raw" / "proc" / str(pid) / "process.json")
    facts = facts if isinstance(facts, dict) else {}
    net = read_json(folder / "raw" / "proc" / "net.json")
    fds = facts.get("fds")
    return Raw(
        facts,
        read_window(folder / "raw" / "proc" / str(pid) / "window.json"),
        read_samples(folder / "raw" / "pyspy" / f"{pid}.chrometrace.json") if with_samples else {},
        Descriptors(fds, net if isinstance(net, dict) else {}) if isinstance(fds, dict) else None,
    )


def _process(folder: Path, pid: int, raw: Raw, how: How) -> Tuple[Process, List[Gap]]:
    """From its core, or without one from what /proc and py-spy said."""
    path = folder / "raw" / "cores" / f"{pid}.core"
    if path.is_file():
        try:
            core = open_core(path, how.sysroot)
            kept = folder / "raw" / "exe" / str(pid)
            if kept.is_file():  # the file was gone while the program ran: nobody else has it
                take_executable(core, kept)
            return read_core(core, pid, raw, how)
        except PostmortemError as exc:
            process, gaps = _without_core(pid, raw)
            return process, [Gap("core", f"process {pid}", str(exc), exc.next or None), *gaps]
    return _without_core(pid, raw)


def _without_core(pid: int, raw: Raw) -> Tuple[Process, List[Gap]]:
    facts = raw.process
    listed = facts.get("threads")
    tids = set(raw.window.threads)
    tids |= {int(t) for t in listed if t.isdigit()} if isinstance(listed, dict) else set()
    samples = assigned(raw.samples, tids)
    gaps = []
    if len(samples) < len(raw.samples):
        lost = "only its core tells which thread each of py-spy's stacks belongs to (Python 3.8 to 3.10)"
        gaps.append(Gap("py-spy", f"samples of process {pid}", lost, "see the gap of its core"))
    raw, tids = raw._replace(samples=samples), tids | set(samples)
    argv = facts.get("argv")
    book = DescriptorBook(raw.descriptors)
    threads = tuple(_bare_thread(tid, pid, raw, book) for tid in sorted(tids, key=lambda t: (t != pid, t)))
    process = Process(
        pid=pid,
        ppid=facts.get("ppid") if isinstance(facts.get("ppid"), int) else None,
        argv=tuple(map(str, argv)) if isinstance(argv, list) else (),
        exe=facts.get("exe") if isinstance(facts.get("exe"), str) else None,
        state=facts.get("state") if isinstance(facts.get("state"), str) else None,
        threads=threads,
        resources=book.resources(),
        listening=raw.descriptors.listening if raw.descriptors else None,
        age_s=number(facts.get("age_s")),
        io=raw.window.io,
        rss_growth=raw.window.rss_growth,
    )
    return process, gaps


def _bare_thread(tid: int, pid: int, raw: Raw, book: DescriptorBook) -> Thread:
    """A thread of which only /proc and py-spy told: its last sample stands for its stack."""
    facts = raw.window.threads.get(tid, {})
    samples = raw.samples.get(tid, ())
    last = max(samples, key=lambda s: s.last_s, default=None)
    call = last_call(raw.window, tid)
    stack: Tuple[PythonFrame, ...] = last.frames if last else ()
    wait: Optional[Wait] = waits.describe(call, Segments({}), raw.descriptors, lambda word: None, ()) if call else None
    if wait is not None and wait.fd is not None:
        wait = changed(wait, resource=book.note(wait.fd, tid))
    name = facts.get("name")
    return Thread(
        tid=tid, name=name if isinstance(name, str) else None,
        state=facts.get("state") if isinstance(facts.get("state"), str) else None,
        wait=wait, stack=stack, counters=counters(raw.window, tid), samples=samples, is_main=tid == pid,
    )  # fmt: skip


def _step_gaps(manifest: Dict[str, Any]) -> List[Gap]:
    """Capture steps that failed or were refused."""
    steps = manifest.get("steps")
    found = []
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and step.get("ok") is False:
            remedy = step.get("remedy")
            found.append(
                Gap(
                    str(step.get("step")), str(step.get("subject") or "capture"), str(step.get("error") or "failed"),
                    str(remedy) if remedy else None,
                )
            )  # fmt: skip
    return found


def _trigger(manifest: Dict[str, Any]) -> Trigger:
    trigger = manifest.get("trigger")
    if not isinstance(trigger, dict):
        return Trigger("timeout")
    name = trigger.get("signal")
    return Trigger(str(trigger.get("kind")), number(trigger.get("seconds")), str(name) if name else None)
