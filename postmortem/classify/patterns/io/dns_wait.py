"""Waits for a host name to be resolved.

**What it looks like.** A thread is inside `getaddrinfo` (or `gethostbyname`, …) and stays there; below it the C library waits
for a name server, as dnspython does in `dns.query`. In asyncio the workers of the default executor stay there, and tasks wait
for them.

**Easily mistaken for** `network-wait`, but no connection has been attempted yet, and its timeout does not apply; a healthy
program that resolves many names, one after another.

**Why it hangs.** The name server does not answer. The C library waits 5 s, asks again, then the next server, then with each
search domain: 30 s or more for each name. No timeout of the program applies to it, and the thread cannot be interrupted there.
asyncio resolves names in the threads that also serve `run_in_executor`: once all of them wait, both stand still.

**Remedy.** Repair the resolver's configuration (/etc/resolv.conf; `options timeout:1 attempts:2`); resolve once and keep the
result; in asyncio use a separate executor for names, or a resolver that needs no threads.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence, Tuple

from ....evidence import Process, PythonFrame, Resource, Thread
from ....findings import Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.alike import THREADS_WAIT, Alike, told_once
from ...facts.knowledge import asks_name_server, own_frame, resolves
from ...facts.suspended import victims, waiting_lines
from ...facts.view import View
from ...pattern import Answer, CannotTell, Match, No, Pattern

PATTERN = Pattern(
    id="dns-wait",
    tier="specific",
    title="waits for a host name to be resolved",
    explanation=(
        "Before a program can connect to a host, it asks a name server for the address. That server does not answer, and the "
        "system's resolver, which asks again and again, gives up only after half a minute or so. A timeout that the program "
        "has set for its connection starts only after that."
    ),
    remedy=(
        "Check the name servers in /etc/resolv.conf (do they answer? `options timeout:1 attempts:2` makes it give up sooner), "
        "resolve a name once and keep its address, and do not resolve in a thread that others wait for."
    ),
    references=(
        "https://docs.python.org/3/library/socket.html#socket.getaddrinfo",
        "https://docs.python.org/3/library/asyncio-eventloop.html#asyncio.loop.getaddrinfo",
        "https://man7.org/linux/man-pages/man5/resolv.conf.5.html",
    ),
)  # fmt: skip

#: Least share of the window spent in the same call, or in such calls one after the other. A server answers in 1 to 50 ms.
LASTS = 0.5
#: Voluntary switches a second: a resolver without an answer wakes once in 5 s (measured: 0 in 1 s), one that is
#: answered at least twice for each name.
ANSWERED = 4
#: Functions of Lib/socket.py and asyncio that call the C function, and the number of frames within which they are found.
_PYTHON, _DEEP = ("getaddrinfo", "getfqdn", "getnameinfo"), 4

_SUMMARY = Template("{thread} waits{at} for a name server{server}{others}")
_SERVER = Template(" ({address})")
_ALL_OTHERS = Template(", and so do all other workers of its pool")
_CALL = Template("{thread} is in {function}{at}{lasts}")
_DNSPYTHON = Template("dns.query.{function}")
_LASTS = Template(", in the same call for at least {seconds:.1f} s")
_FULL = Template(
    "{pool} has {count:n worker}, which {count:v resolves|all resolve} names, and {queued:n job} {queued:v wait} for a free one"
)
_AWAITS = Template("it waits for an answer on {socket}")
_BEHIND = Template("{agent} waits for it")
_ONE_MOMENT = Template("one moment does not show how long: capture the running process (postmortem capture --pid)")
_UNRELATED = Template("nothing shows that the main thread waits for it")
_NEEDS_WINDOW = Template("an observation window: how long {thread} has been resolving a name")
_IS_ANSWERED = Template("{thread} resolves names and gets answers")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each thread that resolves a name."""
    for process in view.processes:
        found = []
        for thread in process.threads:
            if not resolves(thread):
                continue
            who = clauses.named(thread)
            if view.window is None and view.evidence.trigger.kind != "core":
                yield CannotTell((_NEEDS_WINDOW(thread=who),))
            elif _answered(view, thread):
                yield No(_IS_ANSWERED(thread=who))
            else:
                one = _match(view, process, thread)
                found.append(Alike((*[(c.file, c.line) for c in one.culprits[:1]], one.confidence), who, one))
        yield from told_once(found, THREADS_WAIT)


def _answered(view: View, thread: Thread) -> bool:
    """Return whether the thread made progress during the window."""
    switches = view.switches(thread)
    return not view.rests(thread) or (switches is not None and switches > ANSWERED and not _lasts(view, thread))


def _lasts(view: View, thread: Thread) -> bool:
    """Return whether the thread was in such a call for most of the window."""
    if view.window is None:
        return False
    if thread.calling is not None and (thread.calling.lasts_s or 0.0) >= LASTS * view.window:
        return True
    samples = list(view.samples(thread))
    inside = sum(count for count, frames in samples if _in_call(frames))
    return bool(inside) and inside >= LASTS * sum(count for count, _frames in samples)


def _in_call(frames: Sequence[PythonFrame]) -> bool:
    return any(f.function in _PYTHON for f in frames[:_DEEP])


def _match(view: View, process: Process, thread: Thread) -> Match:
    resource = next((r for r in process.resources if thread.wait is not None and r.id == thread.wait.resource), None)
    behind = view.graph.behind(frozenset((Agent(process.pid, thread.tid),)))
    frame = own_frame(thread.python)
    asking = [agent for agent in behind if _in_call(view.graph.places.stack(agent))]
    own = (view.culprit(process, frame, thread),) if frame is not None else ()
    lines = own or waiting_lines(view, asking or behind)
    who, at = clauses.named(thread), clauses.at(frame)
    full = _full(view, process, thread)
    sure = view.window is not None and (view.matters(process, thread) or bool(full) or _awaited(view, process, behind))
    asks, calling = asks_name_server(thread), thread.calling
    named = calling.function if calling is not None else "getaddrinfo"
    called = _DNSPYTHON(function=asks.function) if asks is not None else named
    seconds = calling.lasts_s if calling is not None else None
    lasts = _LASTS(seconds=seconds) if seconds else None
    facts: List[Said] = [_CALL(thread=who, function=called, at=at, lasts=lasts), *full]
    facts += [_AWAITS(socket=resource.description)] if resource is not None else []
    facts += [_BEHIND(agent=agent) for agent in behind[:4]]
    if view.window is None:
        facts.append(_ONE_MOMENT())
    elif not sure:
        facts.append(_UNRELATED())
    return Match(
        confidence="likely" if sure and lines else "possible",
        summary=_SUMMARY(thread=who, at=at, server=_server(resource), others=_ALL_OTHERS() if full else None),
        evidence=tuple(facts),
        culprits=lines,
        victims=victims(view, behind),
        pid=process.pid,
    )


def _server(resource: Optional[Resource]) -> Optional[Text]:
    remote = (resource.remote if resource is not None else None) or ""
    return _SERVER(address=remote) if remote.endswith((":53", ":853")) else None


def _full(view: View, process: Process, thread: Thread) -> List[Text]:
    """Return a text if all workers of the thread's pool resolve names while jobs are queued."""
    for pool in process.pools:
        workers = [t for t in process.threads if t.tid in pool.threads]
        if thread in workers and all(map(resolves, workers)) and pool.queued:
            return [_FULL(count=len(workers), pool=pool.description, queued=pool.queued)]
    return []


def _awaited(view: View, process: Process, behind: Tuple[Agent, ...]) -> bool:
    """Return whether the main task of an idle loop on the main thread waits for it, so that the program cannot end."""
    tasks = {agent.task for agent in behind if agent.pid == process.pid}
    for loop in process.loops:
        runs = view.thread(process, loop.tid)
        if loop.main_task in tasks and runs is not None and runs.is_main and view.rests(runs) and not process.listening:
            return not view.moves(runs)
    return False
