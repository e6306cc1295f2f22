"""Which frame of a stack is the program's own."""

from __future__ import annotations

from postmortem.classify.facts.knowledge import own_frame

from ....support.make import (
    LIB,
    frame,
)


def test_code_made_of_a_string_is_blamed_only_where_there_is_no_other() -> None:
    """A manager's proxy has its methods from a string; a program given with -c has nothing else."""
    proxy, caller = frame("append", 2, "<string>"), frame("add", 7)
    assert own_frame((proxy, caller)) == caller
    assert own_frame((proxy, frame("put", 1, f"{LIB}/queue.py"))) == proxy
