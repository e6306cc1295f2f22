"""The activity of threads in words. Each special term is explained once, at its first use."""

from __future__ import annotations

from typing import Dict, Iterable, List, Optional, Sequence, Set

from ... import sourcepaths
from ...evidence import Gil, Process, PythonFrame, Resource, Thread, Timings, Trigger, Wait, replace
from . import bases

TERMS: Dict[str, str] = {
    "GIL": "global interpreter lock: only the thread that holds it runs Python code",
    "futex": "the kernel's half of a lock: the thread sleeps until it is woken",
    "mutex": "a lock inside native code",
    "re-entrant lock": "RLock: its holder may acquire it again",
    "condition": "the thread sleeps until another one notifies it",
    "semaphore": "a counter of free permits",
    "event loop": "the scheduler that runs coroutines and callbacks in turn",
    "pipe": "a one-way channel between processes",
}

CONFIDENCES: Dict[str, str] = {
    "proven": "the evidence admits no other reading",
    "likely": "the signs fit, and common look-alikes were checked",
    "possible": "worth a look; the evidence does not decide it",
}

# The verb phrase for each kind of wait; words in {braces} are keys of TERMS.
_PHRASES: Dict[str, str] = {
    "gil": "waits for the {GIL}",
    "lock": "waits for a lock",
    "rlock": "waits for a {re-entrant lock}",
    "condition": "waits on a {condition}",
    "semaphore": "waits for a {semaphore}",
    "event-loop": "runs an {event loop} that waits for events",
    "socket": "waits for the other end of a socket",
    "pipe": "waits on a {pipe}",
    "file": "waits for a file",
    "process": "waits for a process to end",
    "sleep": "sleeps",
    "futex": "waits on a {futex}",
    "mutex": "waits for a {mutex}",
    "signal": "waits for a signal",
    "other": "waits",
}

_STATES = {
    "R": "runs or is ready to run",
    "S": "sleeps in the kernel",
    "D": "waits for the disk or another device and cannot be interrupted",
    "T": "is stopped by a signal",
    "t": "is stopped by a debugger",
    "Z": "has ended, and its exit status has not been collected",
    "I": "is idle in the kernel",
}


#: Kinds of waits in which a thread acquires something.
_ACQUIRED = ("lock", "rlock", "semaphore")
_HOUR = 3600.0
#: Seconds from which on a wait gives up so late that it is as good as endless to who waits for the program.
_FAR_S = 600.0
#: Least share of the window that a thread computes, or wants to; and least share runnable without a core that is told.
_MOSTLY, _DELAYED = 0.5, 0.2
#: CPython's default, in seconds (sys.getswitchinterval()).
_USUAL_INTERVAL = 0.005


class Glossary:
    """An explainer of terms: called with a term, it adds the explanation on first use within one report."""

    def __init__(self, told: Iterable[str] = ()) -> None:
        self._told: Set[str] = set(told)

    def __call__(self, term: str) -> str:
        """Return the term, with its explanation on first use."""
        if term in self._told:
            return term
        self._told.add(term)
        return f"{term} ({TERMS[term]})"


def seconds(value: float) -> str:
    """Return a duration for the reader: ``40 ms``, ``1.5 s``, ``58 s``, ``12 min``, ``23 h``, ``4 days``."""
    if value < 0.0995:
        return f"{(value or 0.0) * 1000:.3g} ms"  # a limit that has just passed is no -0.0
    if value < 10:
        return f"{value:.1f}".rstrip("0").rstrip(".") + " s"
    if value < 600:
        return f"{value:.0f} s"
    if value < 2 * _HOUR:
        return f"{value / 60:.0f} min"
    return f"{value / _HOUR:.0f} h" if value < 48 * _HOUR else f"{value / (24 * _HOUR):,.0f} days"


def trigger(found: Trigger) -> str:
    """Return the reason for a capture, as a sentence."""
    length = None if found.seconds is None else seconds(found.seconds)
    after = "" if length is None else f" after {length}"
    during = "" if length is None else f" for {length}"
    said = {
        "timeout": f"The command had not ended{after}.",
        "stall": f"The command made no progress{during}.",
        "signal": f"Captured on signal {found.signal or '?'}.",
        "pid": "Captured from a running process.",
        "core": "Read from a core file.",
    }
    return said.get(found.kind, f"Captured ({found.kind}).")


def short_path(file: str) -> str:
    """Return a path without the directories that are common to all libraries."""
    return sourcepaths.short(file)


def own_place(frames: Sequence[PythonFrame]) -> Optional[PythonFrame]:
    """Return the innermost frame outside libraries; without one, the innermost of all."""
    return next(
        (f for f in frames if sourcepaths.is_program(f.file)),
        next(iter(frames), None),
    )


def count(number: float) -> str:
    """Return a rounded number with thousands separators."""
    return f"{number:,.0f}"


def plural(number: int, noun: str) -> str:
    """Return a count with its noun in singular or plural."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def took(timings: Timings) -> str:
    """Return ``Watched for 1 s, copied in a pause of 15 ms, analysed in 0.4 s.``; "" if nothing was measured."""
    analysed = [part for part in (timings.extract_s, timings.classify_s) if part is not None]
    named = (
        ("watched for", timings.observe_s),
        ("copied in a pause of", timings.pause_s),
        ("analysed in", sum(analysed) if analysed else None),
    )
    parts = [f"{name} {seconds(value)}" for name, value in named if value is not None]
    return f"{', '.join(parts).capitalize()}." if parts else ""


def more(number: int, noun: str = "") -> str:
    """Return a sentence on what was left out, and where to find it."""
    return f"{number:,} more{f' {noun}' if noun else ''}: the JSON report (`-f json`) has all."


def label(thread: Optional[Thread], tid: Optional[int] = None, task: Optional[str] = None) -> str:
    """Return a thread's name for the reader: ``thread 17 "worker-3"``.

    tid, task: of an agent that is no thread of the evidence.
    """
    if thread is not None:
        return f'thread {thread.tid} "{thread.name}"' if thread.name else f"thread {thread.tid}"
    return f"task {task}" if task is not None else "the process itself" if tid is None else f"thread {tid}"


def waiting(wait: Wait, process: Process, term: Glossary) -> str:
    """Return a thread's wait in words: the kind, then the call, the object, its holder and the limit, as far as known."""
    phrase = _PHRASES.get(wait.kind, "waits")
    for name in TERMS:
        if "{" + name + "}" in phrase:
            phrase = phrase.replace("{" + name + "}", term(name))
    if wait.kind == "sleep" and wait.timeout_s == 0:
        return "only yields its turn: it sleeps for 0 s, as sleep(0) does"
    if wait.kind == "gil":
        return phrase  # its futex, its 5 ms timer and the GIL's holder say nothing about this thread
    detail = wait.phrase or ""
    if wait.verb in ("waits", "asks") and detail:
        phrase, detail = detail, ""
    resource = find_resource(process, wait.resource)
    if wait.verb == "call" and resource is not None:
        detail = ""  # the object's own description names the descriptor and its addresses
    # nearly all locks wait on a futex: it is informative only if nothing else is known
    if (
        wait.syscall
        and (wait.verb != "call" or resource is not None)
        and not _looks_again(wait)
        and (wait.syscall != "futex" or wait.kind == "other")
    ):
        phrase += f" in {wait.syscall}"
    if wait.fd is not None and wait.verb != "call" and resource is None:
        phrase += f" on descriptor {wait.fd}"
    if wait.pid is not None and resource is None:
        phrase += f": process {wait.pid}"
    if detail:
        phrase += f": {detail}"
    if resource is not None:
        phrase += f": {resource.description}{_addresses(resource)}{_holder(resource, process)}"
    return phrase + _limit(wait)


def _limit(wait: Wait) -> str:
    if wait.endless:
        return ", without a time limit"
    given = f", for up to {seconds(wait.timeout_s)}" if wait.timeout_s is not None else ""
    if wait.kind == "event-loop" and wait.remaining_s is not None and wait.remaining_s <= 0:
        return given  # its timer is due, and it is about to run it
    return f"{given}{limit_ends(wait.remaining_s, wait.kind)}"


def limit_ends(remaining_s: Optional[float], kind: str) -> str:
    """Return when a wait ends by its time limit, as a phrase behind a comma; "" if unknown.

    ``kind``: of the wait; a sleep does not give up.
    """
    if remaining_s is None:
        return ""
    if remaining_s < 0:
        return f", {'over' if kind == 'sleep' else 'timed out'} since {seconds(-remaining_s)}"
    what = "ends" if kind in ("sleep", "event-loop") else "gives up" if remaining_s >= _FAR_S else "times out"
    return f", {what} in {seconds(remaining_s)}"


def _looks_again(wait: Wait) -> bool:
    """Return whether a thread only pauses in its call until it looks for the end of a child, or asks for a file's lock, again."""
    return wait.kind in ("process", "file") and wait.polls_s is not None


def find_resource(process: Process, name: Optional[str]) -> Optional[Resource]:
    """Return a resource of a process by id; None if there is none."""
    return next((r for r in process.resources if r.id == name), None) if name is not None else None


def _addresses(resource: Resource) -> str:
    """Return the addresses of a socket, behind the description of another object that does not have them."""
    if resource.kind == "socket":
        return ""
    if resource.remote:
        return f" ({resource.local or '?'} to {resource.remote})"
    return f" ({resource.local})" if resource.local else ""


def _holder(resource: Resource, process: Process) -> str:
    if resource.kind == "thread":
        return ""  # the description names the joined thread
    if resource.owner_gone:
        return ", whose holder stayed behind in the parent process" if process.forked else ", whose holder has ended"
    if resource.owner_pid not in (None, process.pid):
        return f", held by process {resource.owner_pid}"
    if resource.owner_tid is None:
        return ""
    owner = next((t for t in process.threads if t.tid == resource.owner_tid), None)
    absent = "" if owner is not None else " (not among the threads)"
    return f", held by {label(owner, resource.owner_tid)}{absent}{bases.after_holder(resource.owner_basis)}"


def common_wait(threads: Sequence[Thread]) -> Thread:
    """Return the first thread, its wait without fields that differ among the others, such as limits or descriptors."""
    first = threads[0]
    waits = [thread.wait for thread in threads]
    if first.wait is None or len(threads) == 1:
        return first
    fields = ("syscall", "resource", "timeout_s", "remaining_s", "endless", "fd", "pid")
    differing = [name for name in fields if len({getattr(wait, name, None) for wait in waits}) > 1]
    if len({wait.phrase if wait is not None else None for wait in waits}) > 1:
        differing += ["verb", "detail"]
    shared: Thread = replace(first, wait=replace(first.wait, **dict.fromkeys(differing)))
    return shared


def doing(thread: Thread, process: Process, term: Glossary) -> str:
    """Return what a thread does now: its wait, that it runs, or the meaning of its state letter."""
    if thread.wait is not None:
        return waiting(thread.wait, process, term)
    if thread.gil == "waits":
        return f"waits for the {term('GIL')}"
    if thread.gil == "holds":
        return f"holds the {term('GIL')}"
    if thread.state in _STATES:
        return _STATES[thread.state]
    return "is in an unknown state"


def now(threads: Sequence[Thread], process: Process, term: Glossary) -> str:
    """Return what threads with the same stack do at the moment of the capture, as all reports say it.

    A thread that computes most of the time was met in its wait by chance: the wait is what the capture saw, not its state.
    """
    if process.crash is not None and any(process.crash.tid == thread.tid for thread in threads):
        return "crashed here"
    state = doing(common_wait(threads), process, term)
    if threads[0].wait is not None and threads[0].wait.kind != "gil" and all(map(computes, threads)):
        return f"computes most of the time; at the moment of capture it {state}"
    return state


def computes(thread: Thread) -> bool:
    """Return whether a thread used, or was runnable and waited for, most of a core over the window."""
    counters = thread.counters
    if counters is None or counters.cpu_s is None or counters.seconds <= 0:
        return False
    return counters.cpu_s + (counters.run_delay_s or 0.0) >= _MOSTLY * counters.seconds


def called(thread: Thread) -> str:
    """Return the C function that a thread is in, with what it was called for; "" if unknown.

    A thread that acquires a lock is in no ``__exit__``, whatever an older extraction took for its call: the value stack
    keeps that of the `with` around.
    """
    call = thread.calling
    if call is None or (
        thread.wait is not None and thread.wait.kind in _ACQUIRED and call.function.endswith("__exit__")
    ):
        return ""
    return f"{call.function} ({call.detail})" if call.detail else call.function


def work(threads: Sequence[Thread]) -> str:
    """Return the CPU used and the voluntary switches over the window, in words; "" without counters."""
    counted = [t.counters for t in threads if t.counters is not None and t.counters.seconds > 0]
    if not counted:
        return ""
    parts: List[str] = []
    cpu = [c.cpu_s / c.seconds for c in counted if c.cpu_s is not None]
    if cpu:
        parts.append(f"used {100 * sum(cpu):.0f} % of a core" if sum(cpu) >= 0.005 else "used no CPU")
    delayed = sum(c.run_delay_s / c.seconds for c in counted if c.run_delay_s is not None)
    if delayed >= _DELAYED * len(counted):
        parts.append(f"was runnable but waited for a core for {100 * delayed / len(counted):.0f} % of the time")
    switches = [c.voluntary_switches / c.seconds for c in counted if c.voluntary_switches is not None]
    if sum(switches) >= 1:
        times = count(sum(switches))
        parts.append("gave up the CPU once a second" if times == "1" else f"gave up the CPU {times} times a second")
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def gil_tells(gil: Gil, process: Process) -> bool:
    """Return whether the GIL is worth mentioning: held, waited for, or handed over at least once a second."""
    waited = any(thread.gil == "waits" for thread in process.threads)
    return bool(gil.locked) or waited or (gil.handoffs_per_s or 0) >= 1


def gil_line(gil: Gil, process: Process, term: Glossary) -> str:
    """Return the holder of the GIL and its rate of hand-offs, in words; "" if nothing is known."""
    parts: List[str] = []
    if gil.locked is False:
        parts.append("free at the moment of capture")
    elif gil.holder_tid is not None:
        holder = next((t for t in process.threads if t.tid == gil.holder_tid), None)
        parts.append(f"held by {label(holder, gil.holder_tid)}")
    elif gil.locked:
        parts.append("held by an unknown thread")
    if gil.handoffs_per_s is not None:
        times = count(gil.handoffs_per_s)
        parts.append("changed hands once a second" if times == "1" else f"changed hands {times} times a second")
    if gil.switch_interval is not None and parts and gil.switch_interval != _USUAL_INTERVAL:
        parts.append(f"a waiter asks the holder to release it after {seconds(gil.switch_interval)}")
    return f"{term('GIL')}: {', '.join(parts)}" if parts else ""
