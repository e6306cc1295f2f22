"""pm-why: the diagnosis where there is one; in any gdb, the way from a thread to whoever holds it up."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set

import gdb

from .command import PmCommand, Store
from .holders import Holder, LockHolders
from .session import Row, Session
from .show import clean, short_place, styled

#: Where `postmortem debug` writes its diagnosis, ended by a NUL; it is made while gdb already runs.
WHY, WHY_DEADLINE_S = "POSTMORTEM_WHY", 180.0
MAX_LINKS, MAX_CHAINS = 30, 3
_BY_HAND = "the diagnosis itself is not made in a gdb started by hand: `postmortem analyze CORE` makes one"
_TITLE = "Who waits for whom"
_NOBODY = "  The main thread waits for no other thread that is known, and no threads wait in a circle."
_BASES = {"record": "the lock's own record", "with": "read from its `with`"}


class Why(PmCommand):
    """Show the diagnosis: what the program waits for, whose fault that is, and which line to change.

    Usage: pm-why

    `postmortem debug` makes it while gdb starts; this command waits for it. In a gdb started by hand, on a core or a
    live process, only who waits for whom is shown, from the main thread on."""

    name = "pm-why"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        path = os.environ.get(WHY)
        if not path:
            yield styled(_TITLE, "bold")
            yield from chains(Store.get()) or [_NOBODY]
            raise gdb.GdbError(_BY_HAND)
        until = time.monotonic() + WHY_DEADLINE_S
        while True:
            try:
                data = Path(path).read_bytes()
            except OSError:
                raise gdb.GdbError("the diagnosis is gone with the `postmortem debug` that made it") from None
            if data.endswith(b"\0"):
                break
            if time.monotonic() > until:
                raise gdb.GdbError("the diagnosis is not ready yet: ask again, or run `postmortem analyze`")
            time.sleep(0.05)
        diagnosis = data[:-1].decode("utf-8", "replace").splitlines()
        yield from diagnosis
        found = [] if _TITLE in diagnosis else chains(Store.get())
        if found:  # nothing that was recognised draws one
            yield ""
            yield styled(_TITLE, "bold")
            yield from found


class Chain(NamedTuple):
    """``rows``: each waits for the next one. ``end``: what is to be said of the last."""

    rows: List[Row]
    holders: List[Holder]
    end: str


def chains(session: Session) -> List[str]:
    """The main thread's way first, then those of circles that it is not behind; empty when nobody is held up."""
    holders = LockHolders(session)
    rows = {row.tid: row for row in session.rows()}
    main = gdb.selected_inferior().pid
    shown: List[Chain] = []
    told: Set[int] = set()
    for tid in sorted(rows, key=lambda tid: (tid != main, tid)):
        chain = _follow(rows[tid], rows, holders)
        circle = bool(chain.holders) and chain.holders[-1].tid == tid
        tells = tid == main and bool(chain.holders) and (chain.holders[0].tid is not None or chain.holders[0].gone)
        if tid not in told and (circle or tells) and len(shown) < MAX_CHAINS:
            told |= {row.tid for row in chain.rows}
            shown.append(chain)
    return [line for chain in shown for line in _lines(chain, rows)]


def _follow(start: Row, rows: Dict[int, Row], holders: LockHolders) -> Chain:
    way, found = [start], []
    while len(way) <= MAX_LINKS:
        row = way[-1]
        if row.wait is None:
            return Chain(way, found, ", which runs" if found else "")
        holder = holders.of(row)
        if holder.gone:
            return Chain(way, [*found, holder], ", whose holder is no more")
        if holder.tid is None:
            return Chain(way, [*found, holder], ", whose holder is not known")
        found.append(holder)
        if holder.tid in [before.tid for before in way]:
            return Chain(way, found, ": the circle is closed")
        if holder.tid not in rows:
            return Chain(way, found, ", which is not among the threads")
        way.append(rows[holder.tid])
    return Chain(way, found, ": and so on")


def _lines(chain: Chain, rows: Dict[int, Row]) -> Iterator[str]:
    yield f"  {_label(chain.rows[0])}{_where(chain.rows[0])}"
    for number, (row, holder) in enumerate(zip(chain.rows, chain.holders)):
        last = number + 1 == len(chain.holders)
        yield f"    → {_link(row, holder, rows)}{chain.end if last else ''}"


def _link(row: Row, holder: Holder, rows: Dict[int, Row]) -> str:
    following: Optional[Row] = rows.get(holder.tid) if holder.tid is not None else None
    wait = clean(row.wait.text, 100) if row.wait is not None else "?"
    if following is None:
        return f"waits for {wait}" if row.wait is None or row.wait.lock is None else f"wants {wait}"
    if holder.basis == "join" or (
        row.wait is not None and row.wait.native is not None and row.wait.native.kind == "thread"
    ):
        return f"joins {_label(following)}{_where(following)}"
    since = f" since {holder.since}" if holder.since else ""
    basis = f" ({_BASES[holder.basis]})" if holder.basis in _BASES else ""
    return f"wants {wait}, held by {_label(following)}{since}{basis}{_where(following, 'now at')}"


def _label(row: Row) -> str:
    return f"{clean(row.name, 60)} ({row.tid})" if row.name else f"thread {row.tid}"


def _where(row: Row, at: str = "at") -> str:
    own = next((f for f in row.frames if "/lib/python3" not in f.code.filename and "<" not in f.code.filename), None)
    frame = own or next(iter(row.frames), None)
    return f", {at} {short_place(frame)}" if frame is not None else ""
