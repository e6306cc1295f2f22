"""Read what the threads of a live program wait for, without a capture."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, NamedTuple

from postmortem.cpython.state.interpreter import Python, ThreadState
from postmortem.evidence import Resource
from postmortem.extract.ownership.pools import Pools
from postmortem.extract.ownership.threadholders import find_holders
from postmortem.extract.process.context import PythonContext, context_of
from postmortem.extract.process.threadtable import ThreadTable
from postmortem.extract.recorded.raw import NO_RAW
from postmortem.extract.waits.locks import LockBook, LockWaits
from postmortem.memory import ProcMem

from .bundles import lines_of
from .interpreters import Program


class Found(NamedTuple):
    """The book, the waits it was made of, and the threads, by tid; ``waits``: by the thread's name."""

    book: LockBook
    collected: LockWaits
    pools: Pools
    threads: Dict[int, ThreadState]
    waits: Dict[str, Resource]


def read(program: Program, memory: ProcMem) -> Found:
    """The book of a program at rest, with what each thread waits for, by its name."""
    reader = Python(memory)
    threads = {int(t.native_id or 0): t for t in reader.interpreters[0].threads}
    context = context_of(memory, reader, NO_RAW, program.pid, lines_of, ThreadTable.of_states(threads))  # type: ignore[arg-type]
    assert isinstance(context, PythonContext)
    pools = Pools(context)
    collected = LockWaits(context, pools)
    waits = {}
    for tid, thread in threads.items():
        call = Path(f"/proc/{program.pid}/task/{tid}/syscall").read_text().split()
        facts = collected.wait(int(call[1], 16), tid, thread.frames) if call[0] == "202" else None
        if facts is not None and facts.resource is not None:
            waits[str(thread.name)] = facts.resource
    book = LockBook(context, collected, find_holders(context, collected.wanted, ()))
    resources = {r.id: r for r in book.resources()}
    named = {name: resources[ident] for name, ident in waits.items()}
    return Found(book, collected, pools, threads, named)
