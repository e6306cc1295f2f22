"""The text report: what stands first, that it is bounded, narrow, and safe to print."""

from __future__ import annotations

import re
from typing import List

import pytest

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.report import escape
from postmortem.report.text import textreport

from ....support.samples import TESTCLIENT, Sample, counters, hostile, native, py, sleeper, thrash

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def rendered(sample: Sample, color: bool = False) -> str:
    return textreport.render(*sample, color=color)


def flat(report: str) -> str:
    """The report as one line, so that a test does not depend on where lines were broken."""
    return " ".join(report.split())


def test_the_first_line_is_the_verdict_with_its_confidence() -> None:
    """One line of a CI log is enough to read the answer."""
    assert rendered(thrash()).splitlines()[0] == "Verdict: gil-thrash, likely"


def test_the_place_to_change_comes_before_the_threads() -> None:
    """Verdict, place, remedy, evidence, threads, gaps: in this order."""
    report = rendered(thrash())
    order = [
        "Verdict:",
        "hand the GIL to and fro",
        "Where to change the code",
        f"{TESTCLIENT}:153",
        "> 153",
        "What to do",
        "Evidence",
        "Also found",
        "Process 100",
        "Ruled out",
        "Could not be decided",
        "What could not be read",
        "Watched for 1 s",
    ]
    positions = [report.index(part) for part in order]
    assert positions == sorted(positions)


def test_the_culprit_shows_its_source_with_the_lines_around_it() -> None:
    """The cited line is marked, its neighbour that the evidence holds stands above it, indentation kept."""
    lines = rendered(thrash()).splitlines()
    at = next(n for n, line in enumerate(lines) if line.strip().startswith("> 153"))
    assert lines[at - 1].endswith("152  while self._receive_queue.empty():")
    assert lines[at].endswith("153      await anyio.sleep(0)")


def test_a_culprit_line_of_the_finding_is_shown_when_the_evidence_has_none() -> None:
    """The finding's own copy of the line stands in."""
    evidence, diagnosis = thrash(2)
    lead = ev.replace(diagnosis.findings[0], culprits=(fi.Culprit(100, 101, None, "/x.py", 4, "f", "    poll()\n"),))
    report = textreport.render(evidence, ev.replace(diagnosis, findings=(lead,)), color=False)
    assert re.search(r"> 4  poll\(\)$", report, re.M)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_keep_to_the_width(width: int) -> None:
    """Only a line that is one single word, such as a path, may be longer."""
    for sample in (thrash(), sleeper(), hostile()):
        for line in textreport.render(*sample, color=False, width=width).splitlines():
            assert escape.columns(line) <= width or len(line.split()) == 1, line


def test_colour_changes_nothing_but_colour() -> None:
    """Without its colour codes the coloured report is the plain one, and the plain one has none."""
    plain, colored = rendered(thrash()), rendered(thrash(), color=True)
    assert "\x1b" not in plain
    assert "\x1b[" in colored
    assert ANSI.sub("", colored) == plain


def test_identical_stacks_are_one_paragraph() -> None:
    """59 loops in the same place are told once, with their number."""
    report = rendered(thrash())
    assert report.count("×59 threads") == 1
    assert report.count("_run_once") == 2  # the group, and the thread that holds the GIL
    assert "×60 tasks" in report


def test_idle_threads_are_folded_beside_a_finding() -> None:
    """A pool that only waits takes one entry and no stack."""
    report = flat(rendered(thrash()))
    assert "×12 threads: each waits for a lock, without a time limit; in _worker" in report


def test_threads_that_fight_are_not_idle() -> None:
    """Little CPU and many switches: that is what threads after the GIL look like, whatever their futex is called."""
    evidence, diagnosis = thrash()
    (process,) = evidence.processes
    busy = [
        ev.Thread(
            2000 + n, f"b{n}", wait=ev.Wait("futex", "futex"), stack=(py("fights"),), counters=counters(0.01, 300)
        )
        for n in range(3)
    ]
    evidence = ev.replace(evidence, processes=(ev.replace(process, threads=(*process.threads, *busy)),))
    report = textreport.render(evidence, diagnosis, color=False)
    assert "×3 threads" in report.split("Idle:")[0]


def test_the_c_librarys_inner_frames_are_left_out() -> None:
    """What a reader can place stays: the call that the program made."""
    stack = (native("__futex_abstimed_wait_common64"), native("pthread_cond_timedwait"), native("take_gil"), py("f"))
    process = ev.Process(1, python=ev.PythonInfo("3.12.1"), threads=(ev.Thread(1, stack=stack),))
    report = textreport.render(ev.Evidence(ev.Trigger("pid"), (process,)), fi.Diagnosis(None, "n"), color=False)
    assert "in native code: pthread_cond_timedwait < take_gil\n" in report


def test_idle_threads_are_shown_when_nothing_was_found() -> None:
    """Without a finding they are all there is to go by."""
    evidence, _ = thrash()
    report = textreport.render(evidence, fi.Diagnosis(None, "none"), color=False)
    assert "Idle:" not in report
    assert "×12 threads" in report


def test_nothing_recognised_is_said_plainly_with_what_the_threads_wait_for() -> None:
    """No finding is an answer too."""
    evidence, _ = thrash()
    lines = textreport.render(evidence, fi.Diagnosis(None, "none"), color=False).splitlines()
    assert lines[0] == "Verdict: none. No known pattern was recognised."
    assert "waits for the GIL" in flat("\n".join(lines[:12]))


def test_a_program_that_is_not_python_says_so_and_what_it_does() -> None:
    """`sleep 60` sleeps."""
    report = flat(rendered(sleeper()))
    assert "not a Python program" in report
    assert "it sleeps in clock_nanosleep, for up to 58 s" in report


def test_an_interpreter_that_could_not_be_read_is_not_called_another_program() -> None:
    """Unknown is not no."""
    process = ev.Process(1, exe="/usr/bin/python3.9", threads=(ev.Thread(1, state="S"),))
    report = textreport.render(ev.Evidence(ev.Trigger("core"), (process,)), fi.Diagnosis(None, "n"), color=False)
    assert "not a Python program" not in report
    assert "could not be read" in report


def test_special_terms_are_explained_once_where_they_first_stand() -> None:
    """A reader who does not know what a GIL is learns it, and learns it once."""
    report = flat(rendered(thrash()))
    assert report.count("GIL (global interpreter lock") == 1


def test_the_task_that_the_finding_cites_comes_first_and_deep_enough() -> None:
    """Its frame lies under those of the library; fewer tasks than others have it."""
    evidence, diagnosis = thrash(3)
    (process,) = evidence.processes
    waiting = tuple(ev.Task(f"w{n}", f"w{n}", "pending", None, (py("wait"),), "Future") for n in range(9))
    deep = tuple(ev.replace(t, stack=(py("a"), py("b"), py("c"), py("d"), py("e"), *t.stack)) for t in process.tasks)
    evidence = ev.replace(evidence, processes=(ev.replace(process, tasks=(*waiting, *deep)),))
    report = textreport.render(evidence, diagnosis, color=False)
    part = report[report.index("12 unfinished tasks") :]
    assert part.index("×3 tasks, awaiting sleep(0)") < part.index("×9 tasks, awaiting Future")
    assert "_asgi_receive" in part


def test_two_thousand_different_threads_stay_readable() -> None:
    """The length is bounded, and what was left out is counted and can be had."""
    threads = tuple(
        ev.Thread(n, f"t{n}", "S", stack=tuple(py(f"f{n}_{d}") for d in range(50)), counters=counters(0.5, 3))
        for n in range(1, 2001)
    )
    tasks = tuple(ev.Task(f"task-{n}", None, "pending", None, (py(f"c{n}"),)) for n in range(2000))
    different = tuple(
        ev.Process(
            n,
            argv=("x" * n,),
            python=ev.PythonInfo("3.12.1"),
            threads=threads[: 2000 if n < 3 else 100],
            tasks=tasks[:200],
        )
        for n in range(1, 31)
    )
    evidence = ev.Evidence(ev.Trigger("timeout", 2.0), different, gaps=tuple(_gaps(500)))
    report = textreport.render(evidence, fi.Diagnosis(None, "n"), color=False)
    assert len(report.splitlines()) < 1500
    assert "1,988 more stacks (1,988 threads) left out: the JSON report (`-f json`) has all" in flat(report)
    assert "22 more processes left out" in flat(report)


def _gaps(number: int) -> List[ev.Gap]:
    return [ev.Gap("gdb", f"thread {n}", f"reason {n + 10_000}") for n in range(number)]


def test_gaps_with_one_cause_are_one_entry() -> None:
    """Forty threads without a stack are one gap with its remedy, not forty."""
    gaps = tuple(ev.Gap("gdb", f"thread {n}", "no unwind information", "install libc6-dbg") for n in range(40))
    report = flat(textreport.render(ev.Evidence(ev.Trigger("core"), gaps=gaps), fi.Diagnosis(None, "n"), color=False))
    assert report.count("no unwind information") == 1
    assert "thread 0 and 39 more" in report
    assert "next time: install libc6-dbg" in report


def test_gaps_that_differ_in_whom_they_are_about_are_one_entry() -> None:
    """A remedy that names the process is the same remedy for five hundred of them."""
    gaps = tuple(
        ev.Gap("py-spy", f"process {n}", "only 4 at a time", f"postmortem capture --pid {n}") for n in range(100, 600)
    )
    report = flat(textreport.render(ev.Evidence(ev.Trigger("pid"), gaps=gaps), fi.Diagnosis(None, "n"), color=False))
    assert "py-spy, process 100 and 499 more: only 4 at a time next time: postmortem capture --pid 100" in report
    assert report.count("only 4 at a time") == 1


def test_gaps_that_differ_in_the_names_of_processes_are_one_entry() -> None:
    """Another user's processes are closed for one reason, whatever they are called."""
    gaps = tuple(ev.Gap("core", f"process {n}", f"process {n} (p{n}) belongs to root") for n in range(5))
    report = flat(textreport.render(ev.Evidence(ev.Trigger("pid"), gaps=gaps), fi.Diagnosis(None, "n"), color=False))
    assert "core, process 0 and 4 more: process 0 (p0) belongs to root" in report


def _worker(pid: int, line: int = 5) -> ev.Process:
    stack = (native("sem_wait"), py("get", line))
    waits = ev.Wait(kind="pipe", syscall="read", resource=f"pipe-{pid}")
    return ev.Process(
        pid,
        ppid=1,
        argv=("python", f"pipe_handle={pid}"),
        python=ev.PythonInfo("3.12.1"),
        threads=(ev.Thread(pid, stack=stack, wait=waits, is_main=True),),
    )


def test_five_hundred_processes_that_do_the_same_are_one_paragraph() -> None:
    """Workers differ in their numbers and pipes alone; one that does something else has a paragraph of its own."""
    root = ev.Process(1, argv=("python", "pool.py"), threads=(ev.Thread(1, stack=(py("join"),), is_main=True),))
    workers = (*(_worker(pid) for pid in range(100, 400)), _worker(400, line=9), *(_worker(n) for n in range(401, 600)))
    report = textreport.render(
        ev.Evidence(ev.Trigger("timeout", 2.0), (root, *workers)), fi.Diagnosis(None, "n"), color=False
    )
    assert len(report.splitlines()) < 60
    assert [line.split(":")[0] for line in report.splitlines() if line.startswith("Process")][-3:] == [
        "Process 1",
        "Process 100 and 498 more like it",
        "Process 400",
    ]
    assert "1 thread each, children of 1" in flat(report)


def test_of_processes_that_do_the_same_the_cited_one_is_shown() -> None:
    """And its group comes before larger ones."""
    root = ev.Process(1, argv=("python", "pool.py"), threads=(ev.Thread(1, is_main=True),))
    processes = (root, *(_worker(pid) for pid in range(100, 120)), _worker(200, line=9), _worker(201, line=9))
    culprit = fi.Culprit(201, 201, None, "/app/work.py", 9, "get")
    finding = fi.Finding("lock-order-deadlock", "proven", "s", "e", "r", culprits=(culprit,))
    diagnosis = fi.Diagnosis("lock-order-deadlock", "x", (finding,))
    report = textreport.render(ev.Evidence(ev.Trigger("timeout", 2.0), processes), diagnosis, color=False)
    heads = [line.split(":")[0] for line in report.splitlines() if line.startswith("Process ")]
    assert heads == ["Process 1", "Process 201 and 1 more like it", "Process 100 and 19 more like it"]


def test_what_differs_within_a_group_is_not_said_of_all() -> None:
    """Two threads in one place, one of them with a time limit: the paragraph claims neither."""
    waits = (ev.Wait("lock", "futex", endless=True), ev.Wait("lock", "futex", timeout_s=5.0, endless=False))
    threads = tuple(ev.Thread(n, None, "S", wait=wait, stack=(py("get"),)) for n, wait in enumerate(waits, 1))
    process = ev.Process(1, python=ev.PythonInfo("3.12.1"), threads=threads)
    report = flat(textreport.render(ev.Evidence(ev.Trigger("pid"), (process,)), fi.Diagnosis(None, "n"), color=False))
    assert "×2 threads, first 1 Waits for a lock. get" in report


def test_who_suffers_is_named() -> None:
    """By thread and place."""
    report = flat(rendered(thrash()))
    assert 'thread 100 "MainThread" of process 100, in receive at starlette/testclient.py:131' in report


def test_who_holds_a_lock_and_how_that_is_known() -> None:
    """The waiter's paragraph names the lock, its holder and the basis; the holder's names the place."""
    lock = ev.Resource("lock-1", "lock", "lock `a` of app.py", owner_tid=2, owner_basis="with-slot")
    waits = ev.Thread(1, "one", wait=ev.Wait("lock", "futex", "lock-1", endless=True), stack=(py("first"),))
    holds = ev.Thread(2, "two", holds=(ev.HeldLock("lock-1", py("second", 7), 0, "with-slot"),), stack=(py("second"),))
    process = ev.Process(1, python=ev.PythonInfo("3.12.1"), threads=(waits, holds), resources=(lock,))
    report = flat(textreport.render(ev.Evidence(ev.Trigger("pid"), (process,)), fi.Diagnosis(None, "n"), color=False))
    assert 'lock `a` of app.py, held by thread 2 "two" (read from the holder\'s `with` statement)' in report
    assert "Holds lock `a` of app.py, acquired in second at /app/work.py:7." in report


def test_native_stacks_show_when_there_is_no_python() -> None:
    """A thread of a native library shows its native frames, addresses where there is no symbol."""
    bare = ev.NativeFrame(None, "/opt/lib/libx.so", 0xABC)
    process = ev.Process(1, python=ev.PythonInfo("3.12.1"), threads=(ev.Thread(1, stack=(native("poll"), bare)),))
    report = textreport.render(ev.Evidence(ev.Trigger("pid"), (process,)), fi.Diagnosis(None, "n"), color=False)
    assert re.search(r"^ +poll +libc\.so\.6$", report, re.M)
    assert re.search(r"^ +0xabc +libx\.so$", report, re.M)


def test_hostile_names_print_as_text() -> None:
    """No control character, line break, direction mark or surrogate of a name reaches the terminal or log."""
    report = rendered(hostile())
    for ch in report:
        assert ch == "\n" or ch.isprintable(), hex(ord(ch))
    report.encode("utf-8")
    assert [line for line in report.splitlines() if line.startswith("Verdict:")] == [report.splitlines()[0]]
    assert "##[" not in report
    assert not [line for line in report.splitlines() if line.strip("- ").startswith("::")]


def test_hostile_names_print_as_text_in_colour_too() -> None:
    """Colour adds its own codes and lets none of theirs through."""
    report = rendered(hostile(), color=True)
    assert "\x1b[2J" not in report
    assert "\x1b" not in ANSI.sub("", report)


@pytest.mark.parametrize(
    ("trigger", "sentence"),
    [
        (ev.Trigger("timeout", 2.0), "The command had not ended after 2 s."),
        (ev.Trigger("timeout"), "The command had not ended."),
        (ev.Trigger("stall", 30.0), "The command made no progress for 30 s."),
        (ev.Trigger("signal", None, "SIGUSR1"), "Captured on signal SIGUSR1."),
        (ev.Trigger("pid"), "Captured from a running process."),
        (ev.Trigger("core"), "Read from a core file."),
    ],
)
def test_why_it_was_captured(trigger: ev.Trigger, sentence: str) -> None:
    """In the report's last lines."""
    report = textreport.render(ev.Evidence(trigger, ()), fi.Diagnosis(None, "n"), color=False)
    assert sentence in flat(report)
