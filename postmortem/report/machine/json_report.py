"""``report.json``: evidence and diagnosis in their public form (report.schema.json beside this file).

``null`` always means unknown. Equal input gives equal bytes: keys are written in the order given here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import msgspec

from ... import evidence as ev
from ... import findings as fi
from ...waitgraph import Agent, Edge, WaitGraph, graph_of
from ..phrases.gaps import in_words
from ..phrases.wording import Wording, facts_in_words
from . import json_text

Json = Dict[str, Any]


def schema() -> str:
    """Return the JSON Schema of a report (draft 2020-12), as text."""
    return Path(__file__).with_name("report.schema.json").read_text("utf-8")


def render(evidence: ev.Evidence, diagnosis: fi.Diagnosis) -> str:
    """Render a report as JSON text that ends in a newline."""
    return json_text.dump(document(evidence, diagnosis))


def render_many(results: Sequence[Tuple[str, ev.Evidence, fi.Diagnosis]]) -> str:
    """Render several targets: ``{"schema", "reports": [...]}``, in the order of the command line."""
    return json_text.dump({"schema": fi.SCHEMA, "reports": [document(e, d) for _target, e, d in results]})


def document(evidence: ev.Evidence, diagnosis: fi.Diagnosis) -> Json:
    """Return a report as plain lists and dicts."""
    return {
        "schema": fi.SCHEMA,
        "tool": {"name": "postmortem", "version": evidence.tool_version or None},
        "trigger": _plain(evidence.trigger),
        "verdict": diagnosis.verdict,
        "signature": diagnosis.signature,
        "root": _plain(diagnosis.root),
        "findings": [_plain(finding) for finding in diagnosis.findings],
        "abstained": [_plain(item) for item in diagnosis.abstained],
        "ruled_out": [_plain(item) for item in diagnosis.ruled_out],
        "processes": [_process(process) for process in evidence.processes],
        "graph": _graph(graph_of(evidence)),
        "gaps": [_gap(gap) for gap in evidence.gaps],
        "timings": _plain(evidence.timings),
        "window_s": evidence.window_s,
        "machine": _plain(evidence.machine),
        "origin": _plain(evidence.origin),
        "checkout": evidence.checkout,
    }


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)


def _process(process: ev.Process) -> Json:
    return {
        "pid": process.pid,
        "ppid": process.ppid,
        "argv": list(process.argv),
        "exe": process.exe,
        "cwd": process.cwd,
        "state": process.state,
        "own_pid": process.own_pid,
        "fatal_signal": process.fatal_signal,
        "crash": _plain(process.crash),
        "cpus_allowed": process.cpus_allowed,
        "io": process.io,
        "rss_growth": process.rss_growth,
        "counters": _plain(process.counters),
        "tracer": process.tracer,
        "cgroup": _plain(process.cgroup),
        "python": _plain(process.python),
        "interpreters": [_plain(interpreter) for interpreter in process.interpreters],
        "gil": _plain(process.gil),
        "threads": [_thread(thread) for thread in process.threads],
        "resources": [_resource(resource) for resource in process.resources],
        "loops": [_plain(loop) for loop in process.loops],
        "tasks": [_task(task) for task in process.tasks],
        "pools": [_plain(pool) for pool in process.pools],
        "signal_handlers": _plain(process.signal_handlers),
        "forked": process.forked,
        "cancels": _plain(process.cancels),
        "catches": _plain(process.catches),
        "backlogs": [_backlog(backlog) for backlog in process.backlogs],
        "kept_exceptions": [_kept(kept) for kept in process.kept_exceptions],
    }


def _thread(thread: ev.Thread) -> Json:
    return {
        "tid": thread.tid,
        "name": thread.name,
        "state": thread.state,
        "is_main": thread.is_main,
        "daemon": thread.daemon,
        "interpreter": thread.interpreter,
        "gil": thread.gil,
        "wait": _wait(thread.wait) if thread.wait is not None else None,
        "joins": thread.joins,
        "python": [_python_frame(frame) for frame in thread.python],
        "native": [_native_frame(frame) for frame in thread.native],
        "stack": [_frame(frame) for frame in thread.stack],
        "counters": _plain(thread.counters),
        "samples": [_sample(sample) for sample in thread.samples],
        "timeline": _plain(thread.timeline),
        "holds": [_held(held) for held in thread.holds],
        "exceptions": [_plain(raised) for raised in thread.exceptions],
        "gc": thread.gc,
        "recursion": _recursion(thread.recursion) if thread.recursion else None,
        "left_out": _plain(thread.left_out),
        "calling": _plain(thread.calling),
        "quiet": thread.quiet,
        "rounds": _plain(thread.rounds),
    }


def _wait(wait: ev.Wait) -> Json:
    """Return a wait; its ``detail`` is the whole phrase, and it has no verb."""
    found: Json = {**_plain(wait), "detail": wait.phrase}
    del found["verb"]
    return found


def _resource(resource: ev.Resource) -> Json:
    found: Json = _plain(resource)
    found["because"], found["steps"] = facts_in_words(resource.because), facts_in_words(resource.steps)
    del found["module"], found["file"]  # the description names them
    return found


def _gap(unworded: ev.Gap) -> Json:
    gap = in_words(unworded)
    return {"source": gap.source, "subject": gap.subject, "reason": gap.reason, "remedy": gap.remedy}


def _frame(frame: ev.Frame) -> Json:
    if isinstance(frame, ev.PythonFrame):
        return {"kind": "python", **_python_frame(frame)}
    return {"kind": "native", **_native_frame(frame)}


def _python_frame(frame: ev.PythonFrame) -> Json:
    return {
        "file": frame.file,
        "line": frame.line,
        "function": frame.function,
        "qualname": frame.qualname,
        "module": frame.module,
        "end_line": frame.end_line,
        "column": frame.column,
        "end_column": frame.end_column,
        "locals": _plain(frame.locals),
    }


def _native_frame(frame: ev.NativeFrame) -> Json:
    return {
        "function": frame.function,
        "module": frame.module,
        "file": frame.file,
        "line": frame.line,
        "address": frame.address,
        "trust": frame.trust,
    }


def _sample(sample: ev.Sample) -> Json:
    return {
        "count": sample.count,
        "first_s": sample.first_s,
        "last_s": sample.last_s,
        "left_out": _plain(sample.left_out),
        "frames": _python_frames(sample.frames),
    }


def _held(held: ev.HeldLock) -> Json:
    return {
        "resource": held.resource,
        "frame": _python_frame(held.frame),
        "depth": held.depth,
        "basis": held.basis,
    }


def _backlog(backlog: ev.Backlog) -> Json:
    places = {name: _python_frames(getattr(backlog, name)) for name in ("made_at", "filled_at", "emptied_at")}
    return {**_plain(backlog), **places, "growth_per_s": backlog.growth_per_s}


def _kept(kept: ev.KeptException) -> Json:
    return {
        **_plain(kept),
        "place": _python_frame(kept.place) if kept.place is not None else None,
        "caught": _python_frame(kept.caught) if kept.caught is not None else None,
        "stored_at": _python_frames(kept.stored_at),
    }


def _recursion(recursion: ev.Recursion) -> Json:
    return {
        "depth": recursion.depth,
        "times": recursion.times,
        "cycle": _python_frames(recursion.cycle),
        "same_lines": recursion.same_lines,
    }


def _task(task: ev.Task) -> Json:
    return {
        "id": task.id,
        "name": task.name,
        "state": task.state,
        "loop": task.loop,
        "stack": _python_frames(task.stack),
        "awaiting": task.awaiting,
        "wait": _plain(task.wait),
        "holds": [_held(held) for held in task.holds],
        "ready": task.ready,
        "moved": task.moved,
    }


def _graph(graph: WaitGraph) -> Json:
    """Return the wait-for graph; edges of a process as a whole are included only if an agent waits for it."""
    wording = Wording(graph.places)
    wanted = {waker for edges in graph.edges.values() for edge in edges for waker in edge.wakers}
    return {
        "edges": [
            _edge(edge, graph, wording)
            for agent, edges in graph.edges.items()
            for edge in edges
            if not agent.is_process or agent in wanted
        ],
        "cycles": [[_agent(agent) for agent in cycle.agents] for cycle in graph.cycles],
    }


def _agent(agent: Agent) -> Json:
    return {"pid": agent.pid, "tid": agent.tid, "task": agent.task}


def _edge(edge: Edge, graph: WaitGraph, wording: Wording) -> Json:
    return {
        "waiter": _agent(edge.waiter),
        "verb": edge.verb,
        "what": wording.what(edge.what),
        "kind": edge.kind,
        "resource": edge.resource,
        "wakers": [_agent(waker) for waker in edge.wakers],
        "all_needed": edge.all_needed,
        "everyone": edge.everyone,
        "outside": facts_in_words(edge.outside),
        "basis": edge.basis,
        "endless": edge.endless,
        "remaining_s": edge.remaining_s,
        "gone": edge.gone,
        "because": facts_in_words(edge.because),
        "stuck": graph.stuck(edge.waiter),
    }


def _python_frames(frames: Sequence[ev.PythonFrame]) -> List[Json]:
    return [_python_frame(frame) for frame in frames]
