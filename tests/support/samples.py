"""Evidence and diagnoses made by hand, shaped like real ones, for the tests of the renderers."""

from __future__ import annotations

from typing import Tuple

from postmortem import evidence as ev
from postmortem import findings as fi

Sample = Tuple[ev.Evidence, fi.Diagnosis]
TESTCLIENT = "/home/u/.venv/lib/python3.12/site-packages/starlette/testclient.py"
EVENTS = "/usr/lib/python3.12/asyncio/base_events.py"


def py(function: str, line: int = 10, file: str = "/app/work.py") -> ev.PythonFrame:
    return ev.PythonFrame(file=file, line=line, function=function)


def native(function: str, module: str = "/usr/lib/libc.so.6") -> ev.NativeFrame:
    return ev.NativeFrame(function=function, module=module, address=0x7F0000001000)


def counters(cpu_s: float = 0.02, voluntary: int = 190) -> ev.Counters:
    return ev.Counters(seconds=1.0, cpu_s=cpu_s, voluntary_switches=voluntary, involuntary_switches=1)


def thrash(sessions: int = 60) -> Tuple[ev.Evidence, fi.Diagnosis]:
    """Event loops in threads that poll, the main thread among those who want the GIL."""
    main = ev.Thread(
        tid=100,
        name="MainThread",
        state="S",
        gil="waits",
        wait=ev.Wait(kind="gil", syscall="futex", timeout_s=0.005),
        stack=(native("take_gil"), py("call_soon_threadsafe", 840, EVENTS), py("receive", 131, TESTCLIENT)),
        counters=counters(),
        is_main=True,
    )
    workers = tuple(
        ev.Thread(
            tid=101 + n,
            name=f"asyncio-portal-{n}",
            state="S",
            gil="waits" if n else "holds",
            wait=ev.Wait(kind="gil", syscall="futex") if n else None,
            stack=(native("take_gil"), py("_run_once", 1987, EVENTS)),
            counters=counters(),
        )
        for n in range(sessions)
    )
    pool = tuple(
        ev.Thread(
            tid=900 + n,
            name=f"pool_{n}",
            gil="detached",
            wait=ev.Wait(kind="lock", syscall="futex", endless=True),
            stack=(native("sem_wait"), py("_worker", 90, "/usr/lib/python3.12/concurrent/futures/thread.py")),
            counters=counters(0.0, 0),
        )
        for n in range(12)
    )
    tasks = tuple(
        ev.Task(f"task-{n}", f"Task-{n}", "pending", f"loop-{n}", (py("_asgi_receive", 153, TESTCLIENT),), "sleep(0)")
        for n in range(sessions)
    )
    loops = tuple(ev.Loop(f"loop-{n}", 101 + n, ready=1, scheduled=0, spins_per_s=200.0 + n) for n in range(sessions))
    process = ev.Process(
        pid=100,
        ppid=1,
        argv=("python", "-m", "unittest", "test_ws"),
        exe="/usr/bin/python3.12",
        state="S",
        python=ev.PythonInfo("3.12.1"),
        interpreters=(ev.Interpreter(0, ev.Gil(True, 101, 0.005, 11800, 11800.0)),),
        threads=(main, *workers, *pool),
        loops=loops,
        tasks=tasks,
    )
    evidence = ev.Evidence(
        trigger=ev.Trigger("timeout", 2.0),
        processes=(process,),
        gaps=(ev.Gap("py-spy", "process 100", "py-spy is not installed", "pip install py-spy"),),
        sources={
            TESTCLIENT: {
                152: "            while self._receive_queue.empty():",
                153: "                await anyio.sleep(0)",
            }
        },
        timings=ev.Timings(1.0, 0.024, 0.8, 0.003),
        window_s=1.0,
        tool_version="0.1.0",
    )
    lead = fi.Finding(
        pattern="gil-thrash",
        confidence="likely",
        summary=f"{sessions + 1} threads hand the GIL to and fro 11,800 times a second, so that little work gets done.",
        explanation="Each poll gives the GIL up and takes it again, and every switch wakes another thread.",
        remedy="Wait on the queue instead of polling it.",
        references=("https://bugs.python.org/issue7946",),
        because_of=("busy-event-loop",),
        culprits=tuple(
            fi.Culprit(100, 101 + n, f"task-{n}", TESTCLIENT, 153, "_asgi_receive") for n in range(sessions)
        ),
        victims=(fi.Victim(100, 100, TESTCLIENT, 131, "receive"),),
        evidence=("11,800 hand-offs a second over 1.0 s", "61 of 73 threads wait for the GIL in most samples"),
    )
    other = fi.Finding("busy-event-loop", "likely", "60 event loops poll.", "why", "how", culprits=lead.culprits[:1])
    diagnosis = fi.Diagnosis(
        verdict="gil-thrash",
        signature="gil-thrash:starlette/testclient.py:_asgi_receive",
        findings=(lead, other),
        abstained=(fi.Abstained("network-wait", ("sockets",)),),
        ruled_out=(fi.RuledOut("lock-order-deadlock", f"no cycle of lock owners among {sessions + 13} threads"),),
    )
    return evidence, diagnosis


def sleeper() -> Tuple[ev.Evidence, fi.Diagnosis]:
    """``sleep 60``: not Python, one thread."""
    thread = ev.Thread(
        tid=7,
        name="sleep",
        state="S",
        wait=ev.Wait(kind="sleep", syscall="clock_nanosleep", timeout_s=58.0),
        stack=(native("clock_nanosleep"), native("main", "/usr/bin/sleep")),
        is_main=True,
    )
    process = ev.Process(pid=7, argv=("sleep", "60"), exe="/usr/bin/sleep", threads=(thread,))
    evidence = ev.Evidence(trigger=ev.Trigger("timeout", 1.0), processes=(process,))
    return evidence, fi.Diagnosis(None, "none:sleep")


BAD = "a\x1b[2J\nVerdict: all fine\r\u202egnp\u2028\udc80::error::x##[error]"
#: What a page might obey.
BAD_IN_HTML = (
    f'</script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>" onfocus="window.hacked=3 {BAD}<!--'
)

_EVIL = "http://evil.example/x"
#: What names may carry, by what it would break. Each has MARKER in it, by which it is found again.
MARKER = "Qx7name"
NAMES = {
    "harmless": MARKER,
    "html": f'<hostile-tag onclick="x()">{MARKER}</hostile-tag><script>x</script><!-- --> &lt;b&gt; &copy; </details>',
    "attribute": f"\"'><hostile-tag a='{MARKER}' x=\"`",
    "markdown": (
        f"# {MARKER} **b** _i_ ~~s~~ [l]({_EVIL}) ![i]({_EVIL}.png) <{_EVIL}> {_EVIL} www.evil.example a@evil.example "
        f"@someone #12 :smile: | a | b | [r]: {_EVIL} - [ ] x"
    ),
    "markdown blocks": f"{MARKER}\n\n# h\n\n> q\n\n- l\n\n1. n\n\n---\n\n    code\n\n| a |\n|---|\n\n[r]: {_EVIL}\n===\n",
    "numbered": f"1. {MARKER} 2) x",
    "dashes": f"- {MARKER}",
    "quoted": f"> {MARKER}",
    "rule": f"--- {MARKER} *** ___ ===",
    "order": f"/close {MARKER}",
    "fence": f"```\n{MARKER}\n````\n<hostile-tag>\n~~~\n`{MARKER}` ``",
    "table": f"{MARKER} | x \\| y\n|---|---|",
    "terminal": f"\x1b[2J\x1b]0;{MARKER}\x07\x9b31m\x7f\x08\x00",
    "lines": f"{MARKER}\r\nVerdict: all fine\x0b\x0c\x85\u2028\u2029\x1c\x1e",
    "directions": f"\u202e{MARKER}\u2066\u200f\u061c\ufeff\u200b\u00ad\U000e0001",
    "surrogates": f"\udc80{MARKER}\ud800\udfff\udcff",
    "long": MARKER + "x" * 10_000 + MARKER,
    "long words": f"{MARKER} " + "<b> " * 300 + MARKER,
    "github": f"::error file=a,line=1::{MARKER}%0A%0D##[error]x\n::stop-commands::x\n  ::warning::{MARKER}",
    "azure": f"##vso[task.setvariable variable=x]{MARKER} x##VSO[task.complete]y ###[group]z",
    "teamcity": f"##teamcity[buildStop comment='{MARKER}'] x##TeamCity[y]",
    "sections": f"section_start:1:{MARKER}\r\x1b[0Kx section_end:1:x travis_fold:start:x travis_time:end:x",
    "buildkite": f"--- {MARKER}\n+++ x\n~~~ y\n^^^ +++",
    "xml": f"]]>{MARKER}</failure></testcase>\x01\ufffe\uffff&#0;<![CDATA[ &bad;",
    "placeholders": f"{MARKER} {{0}} {{{{}}}} [x](1) \\[y\\] %s %1$s",
    "separators": f"{MARKER};main;frame 99\nnext 12",
    "wide": f"größe 日本 {MARKER} e\u0301 \U0001f600",
    "empty": f" {MARKER} \t",
}


def hostile(bad: str = BAD) -> Tuple[ev.Evidence, fi.Diagnosis]:
    """Names that try to move the cursor, add lines, reverse the text, or give a CI runner orders."""
    thread = ev.Thread(
        tid=1,
        name=bad,
        is_main=True,
        wait=ev.Wait(kind="lock", resource="lock-1", detail=bad),
        stack=(py(bad, 3, bad), native(bad, bad)),
        holds=(ev.HeldLock("lock-1", py(bad, 3, bad), 0, "with-slot"),),
        exceptions=(ev.ThreadException("handled", bad, bad, 3, bad, bad),),
        samples=(ev.Sample(3, 0.0, 1.0, (py(bad, 3, bad), py(bad, 4, bad))),),
    )
    process = ev.Process(
        pid=1,
        argv=(bad, bad),
        exe=bad,
        cwd=bad,
        threads=(thread,),
        resources=(ev.Resource("lock-1", "lock", bad, owner_tid=1, owner_basis="with-slot"),),
        loops=(ev.Loop(bad, 1),),
        tasks=(ev.Task(bad, bad, "pending", bad, (py(bad, 3, bad),), bad),),
    )
    evidence = ev.Evidence(
        trigger=ev.Trigger("signal", None, bad),
        processes=(process,),
        gaps=(ev.Gap(bad, bad, bad, bad),),
        sources={bad: {2: bad, 3: bad}},
        window_s=1.0,
        checkout=bad,
    )
    finding = fi.Finding(
        bad,
        "likely",
        bad,
        bad,
        bad,
        (bad,),
        (bad,),
        (fi.Culprit(1, 1, bad, bad, 3, bad, bad, 3, 0, 1),),
        (fi.Victim(1, 1, bad, 3, bad), fi.Victim(1, None, bad, 3, bad, bad)),
        (f"::error::{bad}", bad),
    )
    diagnosis = fi.Diagnosis(bad, bad, (finding, finding), (fi.Abstained(bad, (bad,)),), (fi.RuledOut(bad, bad),))
    return evidence, diagnosis


def detailed() -> Tuple[ev.Evidence, fi.Diagnosis]:
    """One thread of everything that is known of a single thread: columns, locals, exceptions, a deep recursion."""
    turn = (py("parse_item", 20), py("parse_list", 30))
    inner = ev.replace(
        py("parse_item", 20),
        end_line=20,
        column=20,
        end_column=24,
        locals=(ev.Local("depth", "int", "7"), ev.Local("api_key", "str", "<redacted>")),
    )
    frames = (inner, *turn[1:], *turn * 199)
    outer = (*turn * 49, py("main", 5), py("<module>", 9))
    thread = ev.Thread(
        1,
        "MainThread",
        "S",
        "detached",
        ev.Wait("lock", "futex", endless=True),
        stack=(*frames, *outer),
        is_main=True,
        exceptions=(
            ev.ThreadException("raised", "KeyError"),
            ev.ThreadException("handled", "app.ParseError", "/app/work.py", 44, "fails", "bad \x1b[2J item"),
        ),
        gc=True,
        recursion=ev.Recursion(100_002, 50_000, turn),
        left_out=ev.LeftOut(400, 99_502),
    )
    process = ev.Process(
        1,
        argv=("python", "deep.py"),
        python=ev.PythonInfo("3.12.1"),
        threads=(thread,),
        interpreters=(ev.Interpreter(0, collecting=True),),
    )
    sources = {"/app/work.py": {20: "        found[key] = f(x) + g(y)"}}
    evidence = ev.Evidence(ev.Trigger("core"), (process,), sources=sources)
    culprit = fi.Culprit(1, 1, None, "/app/work.py", 20, "parse_item", sources["/app/work.py"][20], 20, 21, 25)
    finding = fi.Finding("self-deadlock", "proven", "It waits.", "Because.", "Do not.", culprits=(culprit,))
    return evidence, fi.Diagnosis("self-deadlock", "s", (finding,))
