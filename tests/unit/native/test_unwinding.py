"""The life of a gdb process: with a stand-in for gdb that writes, hangs, crashes and forks as told."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Callable, List, Sequence, Union

import pytest

from postmortem.errors import ToolFailed, ToolMissing
from postmortem.native import locate, may_share, start, unwind
from postmortem.native.corefile import CoreFile
from postmortem.native.locate import VARIABLE, find_gdb
from postmortem.native.stacks import NativeStacks
from postmortem.native.unwinding import Unwinding, command

from ...support.inwords import reason, remedy

ROOT = Path(__file__).parents[3]
HANG = 60.0  # a stand-in that hangs does so for this long; no test waits for it
Make = Callable[[str], Path]
THREAD = '{"tid": 7, "frames": [{"function": "f", "module": null, "address": 1}], "error": null}'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's index cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def gdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a program that POSTMORTEM_GDB names: `say(text)` writes a line of output."""

    def make(body: str) -> Path:
        path = tmp_path / "fake gdb"
        path.write_text(
            f"#!{sys.executable}\nimport os, sys, time, signal\n"
            "def say(text):\n    with open(os.environ['POSTMORTEM_STACKS'], 'a') as f: f.write(text + '\\n')\n"
            f"thread = {THREAD!r}\n" + textwrap.dedent(body)
        )
        path.chmod(0o755)
        monkeypatch.setenv(VARIABLE, str(path))
        return path

    return make


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """Not a core: what the stand-in says about it is all there is."""
    path = tmp_path / "core"
    path.write_bytes(b"not a core")
    return path


def reasons(stacks: NativeStacks) -> str:
    return " | ".join(f"{gap.subject}: {reason(gap)}" for gap in stacks.gaps)


def test_a_whole_run(gdb: Make, core: Path) -> None:
    """A gdb that says all it has to say gives stacks and no gap."""
    gdb('say(\'{"gdb": "99", "threads": 1}\'); say(thread); say(\'{"end": true}\')')
    found = unwind(core, None, deadline_s=HANG)
    assert [f.function for f in found.stacks[7]] == ["f"]
    assert found.gaps == ()
    assert 0 < found.seconds < HANG


def test_a_gdb_that_hangs_is_killed_with_its_children(gdb: Make, core: Path, tmp_path: Path) -> None:
    """At the deadline the stacks that were written are kept, a gap says so, and nothing of gdb stays alive."""
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    gdb(f"""
        if os.fork() == 0:
            writer = os.open({str(fifo)!r}, os.O_WRONLY)  # the reader sees its end when the last holder has died
            os.write(writer, b"x")
            time.sleep({HANG})
        say('{{"gdb": "99", "threads": 3}}'); say(thread)
        time.sleep({HANG})
    """)
    with start(core, None, deadline_s=3.0) as running, fifo.open("rb", buffering=0) as reader:
        assert reader.read(1) == b"x"
        found = running.collect()
        assert reader.read(1) == b""
    assert list(found.stacks) == [7]
    assert "1 of 3 threads: gdb was stopped after" in reasons(found)
    assert found.seconds < HANG


def test_a_gdb_that_crashes_leaves_what_it_had(gdb: Make, core: Path) -> None:
    """Its signal is named, and the remedy is another gdb."""
    gdb('say(\'{"gdb": "99", "threads": 2}\'); say(thread); os.kill(os.getpid(), signal.SIGSEGV)')
    found = unwind(core, None, deadline_s=HANG)
    assert list(found.stacks) == [7]
    gap = next(gap for gap in found.gaps if "SIGSEGV" in reason(gap))
    assert "gdb-for-pwndbg" in (remedy(gap) or "")


def test_the_script_s_own_stop_is_named(gdb: Make, core: Path) -> None:
    """gdb ends in order, but not with all threads: the script's reason is the gap's."""
    gdb("""say('{"gdb": "99", "threads": 2}'); say(thread); say('{"end": false, "stopped": "out of time"}')""")
    assert "out of time" in reasons(unwind(core, None, deadline_s=HANG))


def test_broken_threads_are_grouped_by_reason(gdb: Make, core: Path) -> None:
    """A thousand threads with one complaint are one gap, with a few of them named."""
    gdb("""
        say('{"gdb": "99", "threads": 1000}')
        for tid in range(1000):
            say('{"tid": %d, "frames": [], "error": "corrupt stack"}' % tid)
        say('{"end": true}')
    """)
    found = unwind(core, None, deadline_s=HANG)
    broken = [gap for gap in found.gaps if "corrupt stack" in reason(gap)]
    assert len(broken) == 1
    assert "0, 1, 2, 3, 4, 5, 6, 7 and 992 more" in broken[0].subject
    assert found.stacks == {}


def test_nothing_at_all_is_an_error_with_gdb_s_last_words(gdb: Make, core: Path) -> None:
    """Not a thread: ToolFailed, one sentence with what gdb said, warnings and source lines aside."""
    gdb("""
        print("the telling line.", file=sys.stderr)
        print("warning: noise", file=sys.stderr)
        print("57\\t./futex-internal.c: No such file or directory.", file=sys.stderr)
        sys.exit(1)
    """)
    with pytest.raises(ToolFailed) as caught:
        unwind(core, None, deadline_s=HANG)
    assert str(caught.value).endswith(": the telling line")
    assert caught.value.next


def test_a_gdb_without_python_is_named_as_such(gdb: Make, core: Path) -> None:
    """gdb's own complaint becomes a sentence that says what to install."""
    gdb("sys.exit('Python scripting is not supported in this copy of GDB.')")
    with pytest.raises(ToolFailed, match="built without Python"):
        unwind(core, None, deadline_s=HANG)


def test_a_wheel_without_its_libpython_is_named_as_such(gdb: Make, core: Path) -> None:
    """The launcher of gdb-for-pwndbg fails where the interpreter is static: the remedy is that library."""
    gdb("sys.exit('NotImplementedError: [error] missing libpython. Please install python3-dev')")
    with pytest.raises(ToolFailed) as caught:
        unwind(core, None, deadline_s=HANG)
    assert "libpython3-dev" in caught.value.next


def test_an_endless_stderr_neither_stalls_nor_floods(gdb: Make, core: Path) -> None:
    """Megabytes of warnings pass through without being kept."""
    gdb(
        """sys.stderr.write('warning: x' * 1_000_000); say('{"gdb": "9", "threads": 1}'); say(thread); say('{"end": true}')"""
    )
    assert list(unwind(core, None, deadline_s=HANG).stacks) == [7]


def test_no_gdb_is_a_missing_tool(core: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a gdb anywhere: ToolMissing, and how to get one."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(ToolMissing) as caught:
        unwind(core, None, deadline_s=1.0)
    assert "gdb-for-pwndbg" in caught.value.next


def test_a_gdb_that_cannot_run_is_a_failed_tool(core: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An executable file of no known format is an error of ours, not an OSError."""
    broken = tmp_path / "gdb"
    broken.write_bytes(b"\x7fELF broken")
    broken.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(broken))
    with pytest.raises(ToolFailed, match="cannot be run"):
        unwind(core, None, deadline_s=1.0)


def test_leaving_early_ends_gdb_and_leaves_no_file(
    gdb: Make, core: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception between start and collect leaves neither process nor files; nor would our own sudden end, for the files
    have no names while gdb writes them."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    gdb(f"say(thread); f = open({str(fifo)!r}, 'w'); f.write('up' + chr(10)); f.flush(); time.sleep({HANG})")
    with contextlib.ExitStack() as opened:
        with pytest.raises(KeyError), start(core, None, deadline_s=HANG):
            reader = opened.enter_context(fifo.open())
            assert reader.readline() == "up\n"
            assert not list(temporary.iterdir())
            raise KeyError
        assert reader.read() == ""  # the writer is dead
    assert not list(temporary.iterdir())


def test_gdb_starts_where_no_files_are_without_the_user_s_python(
    gdb: Make, core: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative names in a core find nothing, PYTHONPATH and LD_PRELOAD do not reach gdb, stdin is empty."""
    monkeypatch.setenv("PYTHONPATH", "/evil")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://example.invalid")
    gdb("""
        bad = [k for k in ("PYTHONPATH", "LD_PRELOAD", "DEBUGINFOD_URLS") if k in os.environ]
        files = [name for name in os.listdir(".") if not name.isdigit()]
        sys.exit(f"{bad} {files} {sys.stdin.read()!r} {os.getsid(0) == os.getpid()}")
    """)
    with pytest.raises(ToolFailed, match=r"\[\] \[\] '' True$"):
        unwind(core, None, deadline_s=HANG)


def test_the_command_line_lets_the_core_run_nothing() -> None:
    """No start-up files, auto-loading or debuginfod, and names that look like options stay names."""
    arguments = command(Path("/usr/bin/gdb"), CoreFile(Path("/tmp/-core")), Path("/tmp/-exe"), None)
    assert {"-nx", "-batch", "set auto-load off", "set debuginfod enabled off"} <= set(arguments)
    assert {"--core=/tmp/-core", "--se=/tmp/-exe"} <= set(arguments)
    assert not any("readnever" in argument for argument in arguments)


def test_a_sysroot_cannot_carry_commands() -> None:
    """gdb takes each line of a setting for a command."""
    with pytest.raises(ToolFailed, match="rename"):
        try:
            command(Path("gdb"), CoreFile(Path("/core")), None, Path("/tmp/x\nshell touch /tmp/y"))
        except ToolFailed as exc:
            raise ToolFailed(exc.sentence()) from exc


def test_the_named_gdb_is_the_only_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """POSTMORTEM_GDB names a program; a wrong name is not replaced by PATH's gdb."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    assert find_gdb() is None


def test_the_wheel_beside_the_interpreter_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Off PATH, the launcher in the environment's own bin folder counts; on PATH, PATH's comes first."""
    monkeypatch.delenv(VARIABLE, raising=False)
    for folder in ("env", "path"):
        launcher = tmp_path / folder / "gdb"
        launcher.parent.mkdir()
        launcher.write_text("#!/bin/sh\n")
        launcher.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "env" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert find_gdb() == tmp_path / "env" / "gdb"
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_gdb() == tmp_path / "path" / "gdb"


def test_a_core_of_another_machine_wants_a_gdb_that_knows_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """gdb-multiarch comes first, whichever is asked says itself what it knows, and of this machine none is asked."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    foreign = "aarch64" if os.uname().machine == "x86_64" else "x86-64"

    def knows(name: str, status: int) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
        locate._knows.cache_clear()

    knows("gdb", 1)
    assert find_gdb(foreign) is None
    assert find_gdb() == tmp_path / "gdb"
    assert "gdb-multiarch" in locate.remedy(foreign)
    assert locate.remedy(None) == locate.REMEDY
    knows("gdb", 0)
    assert find_gdb(foreign) == tmp_path / "gdb"
    knows("gdb-multiarch", 0)
    assert find_gdb(foreign) == tmp_path / "gdb-multiarch"
    assert find_gdb() == tmp_path / "gdb"
    knows("gdb-multiarch", 1)
    assert find_gdb(foreign) == tmp_path / "gdb"
    locate._knows.cache_clear()


#: What a stand-in that reads several cores does for those after the first.
NEXT = """
import json
def say_of(path, tid):
    with open(path, "a") as f:
        f.write('{"gdb": "99", "threads": 1}\\n' + thread.replace('"tid": 7', f'"tid": {tid}') + '\\n{"end": true}\\n')
exe, further = json.loads(os.environ["POSTMORTEM_STACKS_NEXT"])
say('{"gdb": "99", "threads": 1}'); say(thread); say('{"end": true}')
"""


@pytest.fixture
def several(tmp_path: Path) -> List[Path]:
    """Three cores of one program."""
    paths = [tmp_path / f"{number}.core" for number in range(3)]
    for path in paths:
        path.write_bytes(b"not a core")
    return paths


def _together(cores: Sequence[Union[Path, CoreFile]], deadline_s: float = HANG) -> Unwinding:
    return start(cores[0], Path("/bin/prog"), deadline_s=deadline_s, others=cores[1:])


def test_several_cores_share_a_gdb(gdb: Make, several: List[Path]) -> None:
    """It is told of the program and of the others; each core has its own stacks."""
    gdb(NEXT + "assert exe == '/bin/prog'\nfor number, (core, path, files) in enumerate(further): say_of(path, number)")
    with _together(several) as running:
        assert [list(running.collect(core).stacks) for core in several] == [[7], [0], [1]]
        assert not any(running.missed(core) or running.too_late_for(core) for core in several)


def test_a_gdb_that_knows_one_core_at_a_time_misses_the_others(gdb: Make, several: List[Path]) -> None:
    """What it has no word of is to be had alone; the first, which it had, is not."""
    gdb('say(\'{"gdb": "9", "threads": 1}\'); say(thread); say(\'{"end": true}\')')
    with _together(several) as running:
        assert [running.missed(core) for core in several] == [False, True, True]
        assert list(running.collect(several[0]).stacks) == [7]


def test_a_core_that_crashes_gdb_takes_those_behind_it_along_and_nobody_else(gdb: Make, several: List[Path]) -> None:
    """Those before it are whole; its own half is kept, with the crash for a gap."""
    gdb(
        NEXT
        + """
with open(further[0][1], "a") as f:
    f.write('{"gdb": "99", "threads": 2}\\n' + thread + "\\n")
os.kill(os.getpid(), signal.SIGSEGV)
"""
    )
    with _together(several) as running:
        assert [running.missed(core) for core in several] == [False, False, True]
        assert running.collect(several[0]).gaps == ()
        assert "1 of 2 threads: gdb was ended by SIGSEGV" in reasons(running.collect(several[1]))


def test_cores_that_gdb_did_not_come_to_in_time_are_told_apart(gdb: Make, several: List[Path]) -> None:
    """They are not missed, so nobody tries them again: there is no time."""
    gdb(NEXT + f"time.sleep({HANG})")
    with _together(several, deadline_s=1.0) as running:
        assert [running.too_late_for(core) for core in several] == [False, True, True]
        assert not any(running.missed(core) for core in several)


@pytest.mark.parametrize("name", ["a b", "a\nshell touch", "a;b", "a'b", "ü", "a$(b)", "a*"])
def test_a_core_s_name_that_gdb_would_read_is_not_shared(tmp_path: Path, name: str) -> None:
    """Further cores are opened by commands; the first one's name is an argument, and may be anything."""
    exe = Path("/usr/bin/python3")
    assert may_share(tmp_path / "1.core", exe, None)
    assert not may_share(tmp_path / name, exe, None)
    assert not may_share(tmp_path / "1.core", Path("/opt") / name, None)
    assert not may_share(tmp_path / "1.core", None, None)
    assert not may_share(tmp_path / "1.core", exe, tmp_path)


def test_a_core_by_its_descriptor_is_what_gdb_reads(gdb: Make, core: Path) -> None:
    """Another file may lie under its path by then; what is said still names the path. The descriptor may be closed as soon as
    gdb has been started."""
    gdb("""
        named = next(argument[7:] for argument in sys.argv if argument.startswith("--core="))
        sys.exit(f"{named} holds {open(named).read()}; {named}1 is another")
    """)
    descriptor = os.open(core, os.O_RDONLY)
    core.with_name("other").write_bytes(b"another file")
    core.with_name("other").replace(core)
    running = start(CoreFile(core, descriptor), None, deadline_s=HANG)
    os.close(descriptor)
    with running, pytest.raises(ToolFailed) as caught:
        running.collect(core)
    said = str(caught.value)
    assert said.startswith(f"no native stack of {core}: ")
    assert f"{core} holds not a core; /proc/self/fd/" in said and said.endswith("is another")


def test_several_cores_by_their_descriptors(gdb: Make, several: List[Path]) -> None:
    """Each is opened by its own, and its stacks are found under its path; nothing stays open."""
    gc.collect()  # files of earlier tests
    before = sorted(os.listdir("/proc/self/fd"))
    for number, path in enumerate(several):
        path.write_text(f"{number}")
    gdb(NEXT + "for core, path, files in further: say_of(path, 100 + int(open(core).read()))")
    with contextlib.ExitStack() as opened:
        files = [CoreFile(path, opened.enter_context(path.open()).fileno()) for path in several]
        for path in several:
            path.unlink()
        with _together(files) as running:
            assert [list(running.collect(path).stacks) for path in several] == [[7], [101], [102]]
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert may_share(CoreFile(Path("/no plain name"), 3), Path("/bin/prog"), None)


#: A gdb that does not end when it is killed: a tracer that has not seen its end keeps it, and holds its stderr, too.
KEPT = """
    import ctypes
    ready, traced = os.pipe()
    gdb = os.getpid()
    if os.fork() == 0:
        os.setsid()
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if libc.ptrace(0x4206, gdb, None, None):  # PTRACE_SEIZE
            os.write(traced, b"0")
        os.write(traced, b"1")
        open({fifo!r}).read()
        os._exit(0)
    if os.read(ready, 1) != b"1":
        sys.exit("nobody may trace here")
    say('{{"gdb": "99", "threads": 2}}'); say(thread)
    time.sleep({HANG})
"""
#: Unwinds with it, and ends.
LEAVES = """
import sys
from pathlib import Path
from postmortem.report.phrases.gaps import in_words
from postmortem.native import ending, unwind
ending.DIES_S = .2
found = unwind(Path(sys.argv[1]), None, deadline_s=1.5)
print(list(found.stacks), *(f"{gap.reason} | {gap.remedy}" for gap in map(in_words, found.gaps)), sep=chr(10))
"""


def test_a_gdb_that_cannot_be_killed_is_left_behind(gdb: Make, core: Path, tmp_path: Path) -> None:
    """It may hang in a read that nothing interrupts. What it had is kept, a gap says why there is no more, and neither it nor
    what it left open keeps us from ending."""
    fifo = tmp_path / "until"
    os.mkfifo(fifo)
    gdb(KEPT.format(fifo=str(fifo), HANG=HANG))
    try:
        done = subprocess.run(
            [sys.executable, "-c", LEAVES, str(core)],
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
            cwd=ROOT,
        )
    finally:
        os.close(os.open(fifo, os.O_RDWR | os.O_NONBLOCK))
    assert done.returncode == 0, done.stderr
    stacks, *gaps = done.stdout.splitlines()
    assert stacks == "[7]"
    assert any("abandoned" in gap and "copy the core" in gap for gap in gaps), done.stdout
