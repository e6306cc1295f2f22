"""pm-objects: what the garbage collector knows, by type."""

from __future__ import annotations

from typing import Iterator, Sequence

import gdb
from postmortem.cpython.heap.gclists import counts
from postmortem.cpython.objects.builtins import NotThat

from .command import PmCommand, Store
from .show import clean, styled, table


class Objects(PmCommand):
    """Count the objects that the garbage collector knows, by type, most frequent first.

    Usage: pm-objects [COUNT]

    COUNT types are shown, 20 without it. Strings, numbers and other objects without references are not among them."""

    name = "pm-objects"

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        if len(arguments) > 1 or not all(word.isdecimal() for word in arguments):
            raise gdb.GdbError("Usage: pm-objects [COUNT]")
        session = Store.get()
        for interpreter in session.python.interpreters:
            try:
                found = counts(session.python, interpreter)
            except NotThat as exc:
                yield f"Interpreter {interpreter.id}: {exc}"
                continue
            rows = sorted(found.items(), key=lambda item: (-item[1], item[0]))[: int(arguments[0]) if arguments else 20]
            yield styled(f"Interpreter {interpreter.id}: {sum(found.values())} objects of {len(found)} types", "bold")
            yield from table(("COUNT", "TYPE"), [(str(number), clean(name)) for name, number in rows])
