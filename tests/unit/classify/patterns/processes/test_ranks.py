"""Recognition of ranks and their operations, and of the jobs that they form."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

import pytest

from postmortem.classify.facts.view import View
from postmortem.classify.patterns.processes.ranks import jobs_of, rank_of, stays
from postmortem.evidence import Calling, Frame, NativeFrame, Process, PythonFrame, Wait
from postmortem.evidence import replace as changed

from .....support.make import LIB, counters, evidence, frame, process, samples, stack, thread

TORCH = "/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"
TARGET = (*stack("multiprocessing.process.run", "multiprocessing.process._bootstrap"), frame("main", 90))
PIPE = Wait("pipe", "read", endless=True)


def native(name: str) -> NativeFrame:
    return NativeFrame(name, "lib.so", 1)


def one(frames: Sequence[Frame], wait: Optional[Wait] = PIPE, call: Optional[str] = None, pid: int = 1) -> Process:
    calling = Calling(call) if call is not None else None
    return process([thread(pid, frames, is_main=True, wait=wait, calling=calling)], pid=pid, exe="/usr/bin/python3")


@pytest.mark.parametrize(
    ("frames", "call", "operation", "sure"),
    [
        ([frame("all_reduce", 3, TORCH), frame("step", 20)], None, "all_reduce", True),
        ([frame("gather", 3, TORCH), frame("step", 20)], None, "gather", True),
        ([frame("barrier", 3), frame("step", 20)], None, "barrier", True),
        ([frame("gather", 3), frame("step", 20)], None, "gather", False),
        ([native("poll"), native("PMPI_Bcast"), frame("step", 20)], None, "bcast", True),
        ([native("PMPI_Reduce"), frame("step", 20)], None, "reduce", True),
        ([native("ncclAllReduce"), frame("step", 20)], None, "allreduce", True),
        ([frame("step", 20)], "mpi4py.MPI.Comm.allgather", "allgather", True),
        ([native("PyUFunc_Reduce"), frame("step", 20)], None, None, False),
        ([frame("step", 20)], "_functools.reduce", None, False),
        ([frame("step", 20)], "numpy.ufunc.reduce", None, False),
        ([frame("gather", 3, f"{LIB}/asyncio/tasks.py"), frame("step", 20)], None, None, False),
    ],
)
def test_operations(frames: List[Frame], call: Optional[str], operation: Optional[str], sure: bool) -> None:
    """By name, in Python and in C. What other things are called by as well needs a library for ranks, or a peer that is
    waited for, and stays unsure then."""
    found = rank_of(one(frames, call=call))
    assert (found.operation, found.sure) == (operation, sure)
    assert operation is None or (found.site is not None and found.site.line == 20)


@pytest.mark.parametrize("wait", [None, Wait("sleep", "nanosleep", timeout_s=60.0), Wait("gil")])
def test_a_common_name_without_a_peer_is_no_operation(wait: Optional[Wait]) -> None:
    """A function called scan that computes or sleeps is what it says."""
    assert rank_of(one([frame("scan", 3), frame("step", 20)], wait)).operation is None
    assert rank_of(one([frame("all_gather", 3), frame("step", 20)], wait)).operation == "all_gather"


def test_the_place_is_the_programs() -> None:
    """The line of the program that called the outermost operation is named, not a library's or multiprocessing's."""
    deep = [frame("gather", 3), frame("barrier", 7), frame("save", 30), *TARGET]
    found = rank_of(one(deep))
    assert found.operation == "barrier" and found.site is not None and found.site.line == 30
    spawned = [frame("barrier", 7), *stack("multiprocessing.process.run"), frame("<module>", 1, "<string>")]
    lone = rank_of(one(spawned)).site
    assert lone is not None and lone.function == "barrier"


def test_a_job_is_one_function_of_one_program() -> None:
    """Processes that were made for the same function, and the one that runs it itself; not those that were made for others,
    nor whoever made them."""
    ranks = [one([frame("barrier", 3), frame("worker", 20), *TARGET], pid=pid) for pid in (2, 3)]
    other = one([frame("feed", 40), *TARGET], pid=4)
    made = one([*stack("multiprocessing.process.join"), frame("main", 90)], pid=1)
    alone = changed(made, threads=(thread(1, [frame("barrier", 3), frame("worker", 21), frame("main", 91)]),))
    assert [[p.pid for p in job] for job in jobs_of(View(evidence(made, *ranks, other)))] == [[2, 3]]
    assert [[p.pid for p in job] for job in jobs_of(View(evidence(alone, *ranks, other)))] == [[2, 3, 1]]


def test_a_job_of_separate_commands() -> None:
    """Processes of one interpreter and one script are a job, as torchrun and mpirun start them."""
    first, second = (one([frame("step", 20), frame("<module>", 90)], pid=pid) for pid in (5, 6))
    elsewhere = one([frame("step", 20, "/app/other.py")], pid=7)
    assert [[p.pid for p in job] for job in jobs_of(View(evidence(first, second, elsewhere)))] == [[5, 6]]
    assert not list(jobs_of(View(evidence(first, changed(second, exe="/usr/bin/python3.8")))))


def test_who_has_no_thread_is_in_nothing() -> None:
    """Nothing is known of it."""
    assert rank_of(process([])).operation is None


def looked_at(*looks: Tuple[int, Sequence[PythonFrame]], frames: Sequence[PythonFrame], switches: int = 0) -> bool:
    here = thread(1, frames, samples=samples(*looks), counters=counters(0.5, switches))
    return stays(View(evidence(process([here]))), here)


def test_who_stays_in_its_operation() -> None:
    """In nearly all samples it is there, be it that it polls; in C by the line; without samples by whether it moves."""
    inside, outside = [frame("barrier", 3), frame("step", 20)], [frame("load", 4), frame("step", 19)]
    assert looked_at((95, inside), (5, outside), frames=inside)
    assert not looked_at((94, inside), (6, outside), frames=inside)
    assert looked_at((100, outside), frames=outside)
    assert not looked_at((80, outside), (20, [frame("load", 5)]), frames=outside)
    assert looked_at(frames=inside) and not looked_at(frames=inside, switches=50)
