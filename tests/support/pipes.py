"""Processes made by hand that have pipes, children and locks on files in common, for rules about several processes."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from postmortem.evidence import End, Process, Resource, Thread, Wait, Waker
from postmortem.evidence.vocabulary import EndMode

from .make import counters, process, stack, thread

PARENT, CHILD, OTHER = 1, 20, 30
FULL, OUTPUT = "pipe:[7]", "pipe:[8]"


def pipe(
    key: str, pid: int, ends: Tuple[Tuple[int, int, EndMode], ...], closed: Optional[bool] = True, **more: Any
) -> Resource:
    """As ``pid`` sees it, which has the first of ``ends``."""
    mine = ends[0][2]
    wakers = [Waker("end", "kernel", pid=p, name=f"descriptor {fd}") for p, fd, mode in ends if mode != mine]
    return Resource(
        f"{key}-{mine}",
        "pipe",
        f"pipe {key}",
        wakers=tuple(dict.fromkeys(wakers)),
        closed=closed,
        key=key,
        value=65536,
        limit=65536,
        ends=tuple(End(p, fd, mode, p < 900) for p, fd, mode in ends),
        waiters=(pid,),
        **more,
    )


def child(pid: int) -> Resource:
    """Return the resource of a child process that is waited for."""
    return Resource(
        f"child-{pid}", "process", f"child {pid}", wakers=(Waker("runner", "kernel", pid=pid),), closed=True
    )


def waits(resource: Resource, syscall: str, tid: int, *functions: str, **more: Any) -> Thread:
    """Return a thread that waits for ``resource`` without a deadline, in ``syscall``."""
    kind: Any = {"process": "process", "file-lock": "file", "terminal": "file"}.get(resource.kind, resource.kind)
    fd = more.pop("fd", 5)
    wait = Wait(kind, syscall, resource=resource.id, endless=True, fd=fd)
    return thread(tid, stack(*functions), wait=wait, counters=counters(), is_main=more.pop("is_main", True), **more)


def of(pid: int, threads: Tuple[Thread, ...], resources: Tuple[Resource, ...], **more: Any) -> Process:
    """Return a process; its parent is PARENT unless it is PARENT itself."""
    return process(threads, pid=pid, resources=resources, ppid=more.pop("ppid", PARENT if pid != PARENT else 0), **more)


def daemon(ppid: int, switches: int = 0) -> Process:
    """Return process OTHER, asleep for ten minutes."""
    asleep = thread(
        OTHER,
        stack("nap"),
        wait=Wait("sleep", "clock_nanosleep", timeout_s=600.0, endless=False),
        counters=counters(switches=switches),
        is_main=True,
    )
    return of(OTHER, (asleep,), (), ppid=ppid)
