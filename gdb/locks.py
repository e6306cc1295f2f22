"""pm-locks and pm-gil: who holds what, and who waits for it."""

from __future__ import annotations

from typing import Iterator, Sequence

from .command import PmCommand, Store, problems, tids
from .holders import LockHolders
from .show import clean, styled, table


class GilRecord(PmCommand):
    """Show each interpreter's own record of its GIL: locked or not, the holder, the interval, who waits.

    Usage: pm-gil"""

    name = "pm-gil"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        session = Store.get()
        rows = session.rows()
        for interpreter in session.python.interpreters:
            gil = interpreter.gil
            yield styled(f"Interpreter {interpreter.id}", "bold")
            if gil is None:
                yield "  its GIL's record cannot be read, or this build has none"
                continue
            waiting = [r.tid for r in rows if r.gil == "waits" and r.state and r.state.interpreter == interpreter.id]
            holder = session.tid_of(gil.holder) if gil.holder else None
            locked = {True: "yes", False: "no", None: "unknown"}[gil.locked]
            interval = "unknown" if gil.interval_s is None else f"{gil.interval_s * 1000:g} ms"
            yield f"  locked: {locked}"
            yield f"  holder: {holder if holder is not None else 'none' if gil.locked is False else 'unknown'}"
            yield f"  switch interval: {interval}"
            yield f"  changes of holder: {'unknown' if gil.switches is None else gil.switches}"
            yield f"  waiters: {tids(waiting)}"
        yield from problems(session)


class LockTable(PmCommand):
    """Show the locks that threads hold or wait for: who holds each, and who waits.

    Usage: pm-locks

    Locks of Python, locks of native code that somebody waits for (mutexes, rwlocks, conditions, C++ guards), and the
    GIL when somebody wants it. BY says how the holder is known: the lock's own record, or the `with` statement that a
    frame is in. Locks that plain acquire() took show no holder here; `pm-why` infers more from the source."""

    name = "pm-locks"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        holders = LockHolders(Store.get())
        found = [*holders.python_locks(), *holders.native_locks(), *holders.gil()]
        rows = [
            (clean(lock.what, 60), lock.kind, lock.holder.text, lock.holder.basis or "-", tids(lock.waiters))
            for lock in found
        ]
        if rows:
            yield from table(("LOCK", "KIND", "HOLDER", "BY", "WAITERS"), rows)
        else:
            yield "No thread holds a lock by `with`, or waits for one that is known."
