"""Conditions that decide whether a line is reached, from syntax alone."""

from __future__ import annotations

import ast

from postmortem.evidence import Process, PythonFrame, Thread
from postmortem.extract.sourcecode.branches import deciding, of_ranks

SOURCE = """\
def train(rank, rows):
    if rank > 3:
        return
    if not rows:
        print("none")
    for row in rows:
        if row is None:
            break
        while row:
            step(row)
        if row > 2:
            save(row)
        def inner():
            if rank:
                raise ValueError
            barrier()
    barrier()

if train:
    train(0, [])
"""


def test_what_decides_a_line() -> None:
    """The conditions around it, and those before it that leave the function or a loop, nearest first; not those that do
    neither, nor those of other functions."""
    found = deciding(ast.parse(SOURCE), [10, 12, 16, 17, 20])
    assert found == {10: (9, 7, 2), 12: (11, 7, 2), 16: (14,), 17: (7, 2), 20: (19,)}


def test_lines_that_nothing_decides() -> None:
    """And lines that the file has not."""
    assert deciding(ast.parse("go()\nstop()\n"), [1, 2, 77]) == {}


def test_of_many_conditions_the_nearest_are_kept() -> None:
    """Eight of them."""
    source = "".join(f"if x{n}:\n    raise SystemExit\n" for n in range(20)) + "go()\n"
    found = deciding(ast.parse(source), [41])
    assert found[41] == tuple(range(39, 24, -2))


def one(pid: int, *lines: int, file: str = "/app/job.py", exe: str = "/usr/bin/python3") -> Process:
    frames = tuple(PythonFrame(file, line, "f") for line in lines)
    return Process(pid, exe=exe, threads=(Thread(pid, stack=frames, is_main=True), Thread(pid + 1, stack=frames[:1])))


def test_only_ranks_are_asked_about() -> None:
    """Lines of the main threads of processes that run the same program; none where each runs its own."""
    assert of_ranks([one(1, 10, 90), one(5, 20, 90)]) == {"/app/job.py": {10, 20, 90}}
    assert of_ranks([one(1, 10, 90), one(5, 20, file="/app/other.py")]) == {}
    assert of_ranks([one(1, 10, 90), one(5, 20, exe="/opt/python")]) == {}
    assert of_ranks([one(1, 10), Process(9), Process(8, threads=(Thread(8, is_main=True),))]) == {}
