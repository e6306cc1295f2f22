"""Read what the threads of a live program wait for, without a capture."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Tuple

from postmortem.cpython.state.interpreter import Python, ThreadState
from postmortem.evidence import Resource
from postmortem.extract.waits.locks import LockBook
from postmortem.memory import ProcMem

from .bundles import lines_of
from .interpreters import Program


def read(program: Program, memory: ProcMem) -> Tuple[LockBook, Dict[int, ThreadState], Dict[str, Resource]]:
    """The book of a program at rest, with what each thread waits for, by its name."""
    reader = Python(memory)
    threads = {int(t.native_id or 0): t for t in reader.interpreters[0].threads}
    book = LockBook(reader, threads, lines_of)
    waits = {}
    for tid, thread in threads.items():
        call = Path(f"/proc/{program.pid}/task/{tid}/syscall").read_text().split()
        facts = book.wait(int(call[1], 16), tid, thread.frames) if call[0] == "202" else None
        if facts is not None and facts.resource is not None:
            waits[str(thread.name)] = facts.resource
    book.settle()
    resources = {r.id: r for r in book.resources()}
    return book, threads, {name: resources[ident] for name, ident in waits.items()}
