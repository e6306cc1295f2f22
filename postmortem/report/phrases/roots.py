"""The root in words: whether the program is idle, makes progress or waits, and what for."""

from __future__ import annotations

from typing import Dict, List, Optional, Union

from ...evidence import Evidence
from ...findings import Culprit, Diagnosis, Root, RootKind, RootState, Victim
from . import labels

#: What the agent at a root does, by the kind of the root.
DOES: Dict[RootKind, str] = {
    "lock": "waits for a lock",
    "signal": "waits to be signalled by another thread or task",
    "queue": "waits for an item of a queue, or for room in it",
    "permits": "waits for a permit of a semaphore",
    "pool": "waits for a part of a pool",
    "future": "waits for a result",
    "task": "waits for a task, or for something that could not be read",
    "thread": "waits for a thread to end",
    "native-lock": "waits for a lock in native code",
    "shared-lock": "waits for a lock that processes share",
    "file-lock": "waits for a lock on a file",
    "gil": "waits for the GIL",
    "process": "waits for a child process",
    "pipe": "waits for the other end of a pipe",
    "socket": "waits for the other end of a socket",
    "terminal": "waits for input at a terminal",
    "file": "waits for a file",
    "loop": "runs an event loop that waits for events",
    "sleep": "sleeps",
    "stopped": "is stopped",
    "python": "runs Python code",
    "native": "runs native code",
    "cycle": "waits in a cycle, for agents that wait for it",
    "unknown": "waits for something that could not be read",
}
#: What a process as a whole does.
STATES: Dict[RootState, str] = {
    "idle": "The program is idle",
    "progressing": "The program makes progress",
    "waiting": "The program waits",
}
_MEANS: Dict[RootState, str] = {
    "idle": "Nothing is wrong with that wait by itself: what ends it comes from outside, or is not wanted yet.",
    "progressing": "It was not seen to be stuck: whether it is only slow, a longer window would show.",
    "waiting": "No known pattern explains why that does not come.",
}


def sentences(evidence: Evidence, root: Root) -> str:
    """Return what a program without findings does as a whole, and what that means."""
    design = "by design" if root.state == "idle" else None
    subject = " ".join(filter(None, (STATES[root.state], design)))
    return f"{subject}: {_doing(evidence, root)}. {_MEANS[root.state]}"


def line(evidence: Evidence, diagnosis: Diagnosis) -> Optional[str]:
    """Return the root in one line, where it tells more than the leading finding; None otherwise.

    A wait at a line that the finding names already is no news. That the program is idle or makes progress is told beside
    what is only possible.
    """
    root = diagnosis.root
    if root is None or not diagnosis.findings:
        return None
    leading = diagnosis.findings[0]
    if root.state != "waiting":
        told = leading.confidence != "possible"
        state = f"{STATES[root.state][0].lower()}{STATES[root.state][1:]}: "
    else:
        affected = leading.victims if root.kind == "cycle" else ()
        named: List[Union[Culprit, Victim]] = [*leading.culprits, *affected]
        told, state = any(_is_there(root, one) for one in named), ""
    return None if told else f"Root: {state}{_doing(evidence, root)}."


def _is_there(root: Root, one: Union[Culprit, Victim]) -> bool:
    """Return whether what a finding names is the agent at the root, or its line."""
    if (root.file, root.line) == (one.file, one.line) and root.file is not None:
        return True
    same = root.tid == one.tid if root.task is None else root.task == one.task
    return root.pid == one.pid and same and (root.tid, root.task) != (None, None)


def _doing(evidence: Evidence, root: Root) -> str:
    """Return the agent at the root, what it does, and where."""
    process = next((one for one in evidence.processes if one.pid == root.pid), None)
    thread = next((one for one in process.threads if one.tid == root.tid), None) if process is not None else None
    of = f" of process {root.pid}" if len(evidence.processes) > 1 else ""
    at = f" at {labels.short_path(root.file)}:{root.line} in {root.function}" if root.file is not None else ""
    others = f"; {labels.plural(root.others, 'other agent')} end{'s' if root.others == 1 else ''} there, too"
    moves = (
        ", and moved during the window" if root.state == "progressing" and root.kind not in ("python", "native") else ""
    )
    agent = labels.label(thread, root.tid, root.task)
    return f"{agent}{of} {DOES[root.kind]}{at}{moves}{others if root.others else ''}"
