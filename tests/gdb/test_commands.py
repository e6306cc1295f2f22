"""The pm-* commands over real cores, against what the program says of itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..support.interpreters import matrix
from .debugging import Core, commands, debug, take

pytestmark = pytest.mark.live


@pytest.fixture(scope="module", params=matrix(ctypes=True))
def core(request: pytest.FixtureRequest, gdb: Path, tmp_path_factory: pytest.TempPathFactory) -> Core:
    return take(request.param, tmp_path_factory.mktemp("core"))


def test_threads_are_as_the_program_says(core: Core) -> None:
    """pm-threads: every thread with its TID, name, wait and innermost frame; gdb's number leads to the same thread."""
    shown = commands(core.path, "pm-threads", "info threads")
    for name in ("holder", "waiter", "deep", "looper"):
        line = next(line for line in shown["pm-threads"].splitlines() if f"the {name} " in line)
        number, tid = line.replace("*", " ").split()[:2]
        assert int(tid) == core.tids[name]
        assert re.search(rf"^[* ] +{number} .*LWP {tid}\b", shown["info threads"], re.M)
        function, file, lineno = core.stacks[f"the {name}"][0]
        assert re.search(rf"{function} at {re.escape(file)}:{lineno}$", line)
        assert " detached " in line
    assert f"{core.tids['main']} " in shown["pm-threads"]


def test_stacks_are_as_the_program_says(core: Core) -> None:
    """pm-bt all: function, file and line of every frame, in order; a deep recursion is one line and a count."""
    stacks = re.split(r"^Thread ", commands(core.path, "pm-bt all")["pm-bt all"], flags=re.M)[1:]
    by_tid = {int(re.findall(r"TID (\d+)", stack)[0]): stack for stack in stacks}
    for name in ("holder", "waiter", "looper"):
        rows = re.findall(r"^  #\d+ +(\S+) at (.*):(\d+)$", by_tid[core.tids[name]], re.M)
        assert [[function.split(".")[-1], file, int(line)] for function, file, line in rows] == [
            list(row) for row in core.stacks[f"the {name}"]
        ]
    deep = by_tid[core.tids["deep"]]
    assert len(deep.splitlines()) < 100
    counted = re.search(r"this frame ([\d,]+) more times|([\d,]+) frames not shown", deep)
    assert counted, deep
    assert "_bootstrap" in deep.splitlines()[-1] or "_bootstrap" in deep


def test_locals_are_the_programs(core: Core) -> None:
    """pm-locals: values by a reader of ours, a secret masked; a frame that is not there is a sentence."""
    line = next(line for line in debug(core.path, "-ex", "pm-threads").splitlines() if "the holder " in line)
    select_it = f"thread {line.replace('*', ' ').split()[0]}"
    shown = commands(core.path, select_it, "pm-locals")["pm-locals"]
    assert "number = 42" in shown
    assert "words = ['a', 'b']" in shown
    assert "password = " in shown
    assert "hunter2" not in shown
    assert "Python frames" in debug(core.path, "-ex", select_it, "-ex", "pm-locals 99", status=1)


def test_merged_stacks_hold_both_kinds(core: Core) -> None:
    """pm-bt --native: the Python frames in their order, each run before the C frame that runs it."""
    shown = commands(core.path, f"pm-bt --native {core.tids['waiter']}").popitem()[1]
    rows = re.findall(r"^  py  (\S+) at (.*):(\d+)$", shown, re.M)
    assert [row[0].split(".")[-1] for row in rows] == [row[0] for row in core.stacks["the waiter"]]
    kinds = re.findall(r"^  (C|py) {2,3}\S", shown, re.M)
    assert kinds[0] == "C"
    assert kinds[-1] == "C"


def test_locks_have_holders_and_waiters(core: Core) -> None:
    """pm-locks: `first` is held by a with statement, `second` by its own record; who waits for each."""
    shown = commands(core.path, "pm-locks")["pm-locks"]
    first = next(line for line in shown.splitlines() if line.startswith("Lock first "))
    words = [str(word) for word in ("lock", core.tids["holder"], "with", core.tids["waiter"], "holder", "at")]
    assert first.split()[2:8] == words
    assert re.search(r"program\.py:15$", first)  # the line of the `with`
    second = next(line for line in shown.splitlines() if line.startswith("RLock second "))
    assert second.split()[2:5] == ["rlock", str(core.tids["main"]), "record"]
    waiters = re.search(r" record +(\d+), (\d+) ", second)
    assert waiters is not None
    assert {core.tids["holder"], core.tids["deep"]} == set(map(int, waiters.groups()))


def test_native_locks_have_holders_too(core: Core) -> None:
    """pm-locks: a mutex by its own record, on every C library."""
    shown = commands(core.path, "pm-locks")["pm-locks"]
    mutex = next(line for line in shown.splitlines() if re.search(r" mutex +\d", line))
    row = re.search(r" (mutex) +(\d+) +(record) +(\d+)", mutex)
    assert row is not None
    assert row.groups() == tuple(map(str, ("mutex", core.tids["main"], "record", core.tids["native"])))


def test_tasks_say_what_they_await(core: Core) -> None:
    """pm-tasks: a task's lock by its name, and the task that is inside its `async with`."""
    shown = commands(core.path, "pm-tasks")["pm-tasks"]
    heads = dict(re.findall(r"^(\S.*)\n  #0 .*\n(?:  #.*\n)*?  #\d+ +(wants|keeps) at", shown, re.M)[::-1])
    names = {function: head for head, function in heads.items()}
    keeper = names["keeps"].split(" (")[0]
    assert f"awaits asyncio.Lock gate, held by {keeper})" in names["wants"]
    assert "sleep(10000)" in names["keeps"]


def test_objects_are_counted_by_type(core: Core) -> None:
    """pm-objects: as many rows as asked for, the most frequent first; a free-threaded build says why it has none."""
    shown = commands(core.path, "pm-objects 3")["pm-objects 3"]
    if core.free_threaded:
        assert "a free-threaded build" in shown
        return
    head, titles, *rows = shown.splitlines()
    assert re.match(r"Interpreter 0: \d{4,} objects of \d+ types$", head)
    assert titles.split() == ["COUNT", "TYPE"]
    rows = [row for row in rows if re.match(r"\d+ +\w", row)]
    numbers = [int(row.split()[0]) for row in rows]
    assert len(numbers) == 3
    assert numbers == sorted(numbers, reverse=True)


def test_tasks_have_their_chain(core: Core) -> None:
    """pm-tasks: each task with its coroutines down to the innermost await."""
    shown = commands(core.path, "pm-tasks")["pm-tasks"]
    chains = [re.findall(r"#\d+ +(\S+) at", part) for part in re.split(r"^(?=\S)", shown, flags=re.M)]
    assert sum(chain[-2:] == ["inner", "outer"] for chain in chains) == 3
    assert sum(chain[-1:] == ["loop_main"] for chain in chains) == 1


def test_the_gil_is_as_nobody_wants_it(core: Core) -> None:
    """pm-gil: all threads wait in C, so it is free, or not said to be held by one of them; its interval is the default."""
    shown = commands(core.path, "pm-gil")["pm-gil"]
    if "cannot be read, or this build has none" not in shown:
        assert "switch interval: 5 ms" in shown
        assert "locked: no" in shown
        assert "waiters: none" in shown
