"""A process without a core."""

from __future__ import annotations

from typing import Any, Dict

import pytest

from postmortem.extract.process.coreless import read_without_core
from postmortem.extract.recorded.raw import NO_RAW
from postmortem.extract.recorded.window import NO_WINDOW


def _call(name: str) -> Dict[str, Any]:
    return {"last_syscall": {"name": name, "args": [0, 0, 0, 0, 0, 0]}}


@pytest.mark.parametrize(("name", "known"), [("restart_syscall", False), ("poll", True)])
def test_a_restarted_call_is_unknown_without_a_core(name: str, known: bool) -> None:
    """What /proc shows of a process that was stopped before says nothing, and one gap says so, however many threads."""
    window = NO_WINDOW._replace(threads={5: _call(name), 6: _call(name)})
    process, gaps = read_without_core(5, NO_RAW._replace(window=window))
    assert [gap.subject for gap in gaps] == ([] if known else ["system calls of process 5"])
    assert len(process.threads) == 2
