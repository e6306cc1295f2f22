"""Threads and tasks that poll: what they wait for, on every interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Union

import pytest

from postmortem.evidence import Process, TaskWait, Wait
from postmortem.extract.process.reading import read
from postmortem.extract.process.summary import process_of
from postmortem.foreign.processfiles import Files
from postmortem.memory import ElfCore

from ..support.interpreters import Program, matrix
from ..support.takingcores import kernel_core

pytestmark = pytest.mark.live
PROGRAM = (Path(__file__).parent / "polling_program.py").read_text()


class _Sources(Files):
    """The sources of this machine."""

    def lines(self, name: str) -> Optional[List[str]]:
        path = Path(name)
        return path.read_text().splitlines() if path.is_file() else None


def process_in(core: Path, pid: int) -> Process:
    reading, _directory = read(ElfCore(str(core)), pid, None, _Sources(None), [], False)
    return process_of(reading, {}).process


@pytest.mark.parametrize("python", matrix())
def test_pollers_wait_for_what_they_ask(python: Any, tmp_path: Path) -> None:
    """Each for the object that its name begins with; those that rest do not, and a clock or a counter limits others."""
    with Program(python, PROGRAM, tmp_path, cwd=tmp_path) as program:
        process = process_in(kernel_core(program, tmp_path), program.pid)
    kinds = {r.id: r.kind for r in process.resources}
    waits: Dict[str, Union[Wait, TaskWait]] = {}
    waits.update({t.name: t.wait for t in process.threads if t.name and "_" in t.name and t.wait is not None})
    waits.update({t.stack[-1].function: t.wait for t in process.tasks if t.stack and t.wait is not None})
    polls = {name: wait for name, wait in waits.items() if wait.polls_s is not None}
    found = {
        name: kinds.get(wait.resource or "") or ("task" if getattr(wait, "tasks", ()) else wait.kind)
        for name, wait in polls.items()
    }
    wanted = {name: name.partition("_")[0] for name in waits if not name.startswith(("rest_", "main", "sleeper"))}
    wanted.update({name: "future" for name in wanted if name.startswith("limit_")})
    wanted.update(future_task="async-future", event_task="async-event", queue_task="async-queue")
    if "get" in waits:  # up to 3.11 wait_for makes a task for each attempt
        wanted.update(queue_task="task", get="async-queue")
    assert found == wanted
    assert {name for name, wait in polls.items() if wait.endless is False} == {"limit_attempts", "limit_clock"}
    several = {"future_beside_jobs", "future_in_pauses", "thread_further", "event_two_variables"}
    several |= {"event_class_variable", "event_variable_of_class", "event_global"}
    several |= {"event_contents", "event_missing_key", "event_local_contents", "event_contents_until_none_is_left"}
    assert {name for name, wait in polls.items() if wait.endless is None} <= several
    assert all(wait.kind == "sleep" for name, wait in waits.items() if name in ("rest_sleeping", "rest_schedule"))
