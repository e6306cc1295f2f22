"""Signatures: the same for one cause wherever and whenever it is met, another for another cause."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import pytest

from postmortem.classify.signature import VERSION, signature, stable_file
from postmortem.evidence import Evidence, PythonFrame, Task, replace
from postmortem.findings import Culprit, Found, Victim

from ...support.diagnosed import classify
from ...support.make import APP, LIB, evidence, frame, process, samples, stack, thread, two_locks


def culprit(file: str = APP, function: str = "f", line: int = 1, **known: Any) -> Culprit:
    return Culprit(known.pop("pid", 1), known.pop("tid", 1), known.pop("task", None), file, line, function)


def finding(*culprits: Culprit, pattern: str = "lock-order-deadlock", **known: Any) -> Found:
    return Found(pattern, "proven", "s", "e", ("r",), culprits=culprits, **known)


def of(*culprits: Culprit, known: Optional[Evidence] = None, **more: Any) -> str:
    return signature(known or evidence(), finding(*culprits, **more))


def test_it_names_the_pattern_and_the_recipe() -> None:
    """pattern, version, digest: what groups by it can tell signatures that cannot be compared."""
    assert of(culprit()).startswith(f"lock-order-deadlock-{VERSION}-")
    assert signature(evidence(), None).startswith(f"unknown-{VERSION}-")


@pytest.mark.parametrize(
    "same",
    [
        (culprit(line=400), culprit(function="g", line=90)),  # lines that were shifted
        (culprit("/home/x/checkout/service.py"), culprit("C:\\work\\service.py", "g")),  # another checkout
        (culprit(tid=99, pid=7), culprit(function="g", tid=98, pid=8)),  # another run
        (culprit(task="Task-7"), culprit(function="g", task="Task-12")),
        (culprit(function="g"), culprit(), culprit()),  # another order, more threads at the same places
        (culprit(line=3), culprit(line=4), culprit(function="g")),  # another line of the function, or two of it
        (culprit(function="Store.f"), culprit(function="Store.read.<locals>.g")),  # qualified names
        (culprit(), culprit(function="g"), culprit("/src/_fast.c", "run"), culprit("/x/fast.so.3", "?")),  # symbols
    ],
)
def test_what_differs_from_run_to_run_does_not_count(same: Tuple[Culprit, ...]) -> None:
    """Lines, folders, ids, tasks, number and order: none of them makes another cause."""
    assert of(*same) == of(culprit(), culprit(function="g"))


def test_what_makes_another_cause_counts() -> None:
    """Function, file, package, pattern, and one place more."""
    every = [
        of(culprit()),
        of(culprit(function="g")),
        of(culprit(), culprit(function="g")),
        of(culprit("/app/other.py")),
        of(culprit(), pattern="self-deadlock"),
        of(culprit("/v/lib/python3.9/site-packages/one/pool.py")),
        of(culprit("/v/lib/python3.9/site-packages/two/pool.py")),
        of(culprit("/app/one/__init__.py")),
        of(culprit("/app/two/__init__.py")),
    ]
    assert len(set(every)) == len(every)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/app/service.py", "service.py"),
        ("/app/one/__main__.py", "one/__main__.py"),
        ("/venv/lib/python3.8/site-packages/starlette/testclient.py", "starlette/testclient.py"),
        ("/usr/lib/python3/dist-packages/starlette/testclient.py", "starlette/testclient.py"),
        ("/v/lib/python3.9/site-packages/foo-1.2-py3.9.egg/foo/pool.py", "foo/pool.py"),
        ("/usr/lib/python3.12/asyncio/tasks.py", "asyncio/tasks.py"),
        ("/opt/python/lib/python3.13t/queue.py", "queue.py"),
        ("/opt/python/lib/python311.zip/queue.py", "queue.py"),
        ("/tmp/tmp8x_a2kq1/job.py", "job.py"),
        ("/tmp/tmp8x_a2kq1.py", "tmp.py"),
        ("/tmp/ipykernel_4711/1234567.py", "<ipython-input>"),
        ("<ipython-input-3-5f3a9c0d2b71>", "<ipython-input>"),
        ("/cache/kernel_5f3a9c0d2b71.py", "kernel_#.py"),
        ("/app/step_1.py", "step_1.py"),
        ("/app/deadbeef.py", "deadbeef.py"),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
        ("/v/lib/python3.12/site-packages/x/_fast.cpython-312-x86_64-linux-gnu.so", "x/_fast"),
        ("/lib/x86_64-linux-gnu/libssl.so.3", "libssl"),
        ("/lib/x86_64-linux-gnu/libc-2.31.so", "libc"),
        ("", ""),
    ],
)
def test_a_file_goes_by_what_stays(path: str, name: str) -> None:
    """Below site-packages and the standard library its path, else its name; never a version, a temporary name or a hash."""
    assert stable_file(path) == name


def test_a_comprehension_is_the_function_around_it() -> None:
    """Up to 3.11 it has a frame of its own, from 3.12 on it has none."""
    inner = (frame("<listcomp>", 5), frame("<setcomp>", 4), frame("total", 4))
    known = evidence(process([thread(1, inner)]))
    assert of(culprit(function="<listcomp>", line=5), known=known) == of(culprit(function="total", line=5), known=known)
    assert of(culprit(function="<listcomp>", line=5)) != of(culprit(function="total", line=5)), "its stack is not known"


def test_of_a_moving_thread_what_it_stays_in_counts() -> None:
    """Which function a sample meets is chance, the loop around them is in nearly all. What stands still stays whole."""
    seen = samples((3, stack("parse", "read", "main")), (2, stack("store", "read", "main")))
    moving = evidence(process([thread(1, stack("parse", "read", "main"), samples=seen)]))
    one, other, both = culprit(function="parse"), culprit(function="store"), culprit(function="read")
    assert of(one, both, known=moving) == of(other, both, known=moving) == of(both, known=moving)
    assert of(one, known=moving) != of(other, known=moving), "nothing that stays: then all that is known"
    still = evidence(process([thread(1, stack("parse", "read", "main"), samples=seen[:1])]))
    assert of(one, both, known=still) != of(both, known=still)
    nearly = samples((9, stack("parse", "read", "main")), (1, stack("idle", "main")))
    known = evidence(process([thread(1, stack("parse", "read", "main"), samples=nearly)]))
    assert of(one, both, known=known) == of(one, both, known=still)


def test_line_shifts_change_nothing() -> None:
    """A whole diagnosis, again with every line of the program moved."""
    first = evidence(two_locks())
    moved = replace(first, processes=tuple(_moved(p, 37) for p in first.processes))
    assert moved != first
    assert classify(moved).signature == classify(first).signature


def _moved(known: Any, by: int) -> Any:
    threads = tuple(
        replace(
            t,
            stack=tuple(f.at(f.line + by) if isinstance(f, PythonFrame) and f.line else f for f in t.stack),
            holds=tuple(replace(h, frame=h.frame.at((h.frame.line or 0) + by)) for h in t.holds),
        )
        for t in known.threads
    )
    return replace(known, threads=threads)


def test_the_library_goes_by_its_name_where_nothing_is_pythons() -> None:
    """Native places alone: the module, and where the thread is in the program; whether symbols were there is no matter."""
    known = evidence(process([thread(1, stack("encode", "main"))]))
    with_symbols = culprit("/v/site-packages/x/_fast.cpython-312-x86_64-linux-gnu.so", "fast_encode")
    without = culprit("/elsewhere/site-packages/x/_fast.abi3.so", "?")
    assert of(with_symbols, known=known) == of(without, known=known)
    other = evidence(process([thread(1, stack("decode", "main"))]))
    assert of(without, known=known) != of(without, known=other)


def test_without_a_line_to_change_it_is_where_the_victims_are() -> None:
    """And where no stack is known either, the program; never one signature for all that is stopped."""
    known = evidence(process([thread(1, stack("encode", "main"))]))
    other = evidence(process([thread(1, stack("decode", "main"))]))
    victim = (Victim(1, 1),)
    assert of(known=known, victims=victim) != of(known=other, victims=victim)
    one, two = (evidence(process([], argv=argv)) for argv in (("python", "/x/a.py"), ("python3.12", "-m", "b")))
    assert of(known=one) != of(known=two)
    assert of(known=one) == of(known=evidence(process([], argv=("/opt/python3.9", "-u", "/y/a.py"))))


def test_the_unrecognised_goes_by_what_stays() -> None:
    """The functions that stay on the stack over the window; what is called below differs from sample to sample."""
    seen = samples((3, stack("parse", "read", "main")), (2, stack("store", "read", "main")))
    moving = evidence(process([thread(1, stack("parse", "read", "main"), samples=seen)]))
    other = samples(
        (1, stack("parse", "read", "main")), (4, stack("store", "index", "read", "main")), (1, stack("main"))
    )
    again = evidence(process([thread(1, stack("store", "index", "read", "main"), samples=(*seen, *other))]))
    resting = evidence(process([thread(1, stack("read", "main"))]))
    elsewhere = evidence(process([thread(1, stack("write", "main"))]))
    assert signature(moving, None) == signature(again, None) == signature(resting, None)
    assert signature(moving, None) != signature(elsewhere, None)


def test_the_unrecognised_tells_what_is_waited_for() -> None:
    """The library's function that the program called, not what that calls: `wait` of another release."""
    joins = evidence(process([thread(1, stack("threading._wait_for_tstate_lock", "threading.join", "main"))]))
    newer = evidence(process([thread(1, stack("threading.join", "main"))]))
    queue = evidence(process([thread(1, stack("threading.wait", "queue.get", "main"))]))
    assert signature(joins, None) == signature(newer, None) != signature(queue, None)


def test_the_unrecognised_knows_its_tasks() -> None:
    """What they are in, not how many they are."""
    loop = (*stack("selectors.select"), frame("run_forever", 9, f"{LIB}/asyncio/base_events.py"), frame("main"))
    read, write = (Task(n, n, "pending", None, stack(n)) for n in ("read", "write"))
    many = evidence(process([thread(1, loop)], tasks=(read, replace(read, id="2"))))
    one = evidence(process([thread(1, loop)], tasks=(read,)))
    other = evidence(process([thread(1, loop)], tasks=(write,)))
    assert signature(many, None) == signature(one, None) != signature(other, None)
