"""Native stacks of real cores through a real gdb."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Callable, List, Optional, Sequence

import pytest

from postmortem.cores.executable import find_executable
from postmortem.errors import ToolFailed
from postmortem.evidence import NativeFrame, PythonFrame
from postmortem.extract.assemble.cores import from_core
from postmortem.memory import ElfCore
from postmortem.native import CoreFile, start, unwind
from postmortem.native.merge import loop_indices
from postmortem.native.unwinding import command

from ..support.inwords import reason, remedy
from .conftest import Take, Taken, interpreters

pytestmark = pytest.mark.live

NOT_A_LOOP = NativeFrame("python", None, 0)
DEADLINE = 120.0  # to detect hangs
BODY = """
lock = threading.Lock()
lock.acquire()
def on_lock(): lock.acquire()
def sleeping(): time.sleep(10_000)
def selecting(): select.select([os.pipe()[0]], [], [])
def through_c(): list(map(lambda _: sorted([1, 2], key=lambda _: time.sleep(10_000)), [1]))
"""
FUNCTIONS = ["on_lock", "sleeping", "selecting", "through_c"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the user's index cache; these share one, as runs do."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture(
    scope="module", params=interpreters(), ids=lambda path: os.path.realpath(path).strip(os.sep).replace(os.sep, "-")
)
def taken(request: pytest.FixtureRequest, take_core: Take) -> Taken:
    """A core of each interpreter at hand."""
    return take_core(BODY, FUNCTIONS, request.param)


@pytest.fixture(scope="module")
def one(take_core: Take) -> Taken:
    """A core of the tests' own interpreter."""
    return take_core(BODY, FUNCTIONS)


def functions(frames: Sequence[NativeFrame]) -> List[Optional[str]]:
    return [frame.function for frame in frames]


def test_every_thread_has_a_whole_stack(taken: Taken) -> None:
    """All threads, no gap, each from the C library's call down to where the thread began, modules as mapped."""
    found = unwind(taken.core, taken.exe, deadline_s=DEADLINE)
    assert found.gaps == ()
    assert sorted(found.stacks) == sorted(taken.tids.values())
    mapped = {file.path for file in ElfCore(str(taken.core)).files}
    for name, tid in taken.tids.items():
        frames = found.stacks[tid]
        assert "libc" in (frames[0].module or "")
        assert {frame.module for frame in frames} <= mapped
        assert {frame.trust for frame in frames} == {"unwind"}
        outermost = "_start" if name == "main" else "clone"
        assert re.search(outermost, " ".join(filter(None, functions(frames[-3:]))))


def test_interpreter_loops_are_as_many_as_python_was_entered(taken: Taken) -> None:
    """list(map(lambda: sorted(key=lambda))) enters Python twice more than a plain function does."""
    stacks = unwind(taken.core, taken.exe, deadline_s=DEADLINE).stacks
    loops = {name: len(loop_indices(stacks[tid])) for name, tid in taken.tids.items()}
    assert loops["sleeping"] == loops["on_lock"] == loops["selecting"] >= 1
    assert loops["through_c"] == loops["sleeping"] + 2
    assert loops["main"] == 1


def test_extension_modules_on_a_stack_are_shown(taken: Taken) -> None:
    """A library that only one thread's stack reaches is loaded for it: `select` where it is a file of its own."""
    extension = {file.path for file in ElfCore(str(taken.core)).files if "/select." in file.path}
    frames = unwind(taken.core, taken.exe, deadline_s=DEADLINE).stacks[taken.tids["selecting"]]
    assert extension <= {frame.module for frame in frames}


def test_python_frames_stand_where_their_loop_is(taken: Taken) -> None:
    """Each native loop frame comes right after the Python frames that it runs, each run ends at a loop."""
    process = from_core(taken.core).processes[0]
    if process.python is None:
        pytest.skip("the interpreter's own reader does not know this version")
    stacks = {thread.tid: thread.stack for thread in process.threads}
    for name in FUNCTIONS:
        stack = stacks[taken.tids[name]]
        loops = set(loop_indices([frame if isinstance(frame, NativeFrame) else NOT_A_LOOP for frame in stack]))
        after_runs = {
            index
            for index, (newer, older) in enumerate(zip(stack, stack[1:]), 1)
            if isinstance(newer, PythonFrame) and isinstance(older, NativeFrame)
        }
        assert loops == after_runs
    python = [frame.function for frame in stacks[taken.tids["through_c"]] if isinstance(frame, PythonFrame)]
    assert python[:3] == ["<lambda>", "<lambda>", "through_c"]


def test_loading_only_what_stacks_reach_changes_nothing(gdb: Path, taken: Taken, tmp_path: Path) -> None:
    """With all libraries loaded from the start gdb gives the same frames: the lazy way loses none."""

    def frames(adjust: Callable[[str], str]) -> List[str]:
        output = tmp_path / "out.jsonl"
        arguments = [adjust(argument) for argument in command(gdb, CoreFile(taken.core), taken.exe, None)]
        environment = {**os.environ, "POSTMORTEM_STACKS": str(output), "POSTMORTEM_STACKS_UNTIL": "1e12"}
        subprocess.run(arguments, env=environment, check=False, capture_output=True, timeout=DEADLINE)
        lines = output.read_text().splitlines()
        assert '"end": true' in lines[-1]
        return lines[:-1]

    lazy = frames(lambda argument: argument)
    eager = frames(lambda argument: argument.replace("auto-solib-add off", "auto-solib-add on"))
    assert len(lazy) == 1 + len(taken.tids)
    assert lazy == eager


def test_the_main_program_is_found(taken: Taken) -> None:
    """The core's own mappings name the program that ran, and its build is the one on this machine."""
    path, gap = find_executable(ElfCore(str(taken.core)))
    assert gap is None
    assert path == taken.exe


def test_python_can_be_read_while_gdb_runs(one: Taken) -> None:
    """start() returns at once; the core is read here meanwhile; collect() has the stacks."""
    with start(one.core, one.exe, deadline_s=DEADLINE) as running:
        tids = {thread.tid for thread in ElfCore(str(one.core)).threads}
        found = running.collect()
    assert set(found.stacks) == tids


def test_without_the_program_frames_are_guesses_and_a_gap_says_so(one: Taken) -> None:
    """gdb finds the libraries through the program; some find it by themselves, and then the stacks are whole."""
    found = unwind(one.core, None, deadline_s=DEADLINE)
    trusts = {frame.trust for frames in found.stacks.values() for frame in frames[1:]}
    if found.gaps:
        assert [remedy(gap) for gap in found.gaps] == ["pass --exe"]
        assert trusts <= {"scan"}
    else:
        assert trusts == {"unwind"}
        assert found.stacks == unwind(one.core, one.exe, deadline_s=DEADLINE).stacks


def test_another_program_is_a_gap(one: Taken) -> None:
    """A wrong --exe is named as another build, whatever frames came of it, and they count as guesses."""
    found = unwind(one.core, Path(shutil.which("cat") or "/bin/cat"), deadline_s=DEADLINE)
    assert any("build-ids differ" in reason(gap) for gap in found.gaps)
    assert {frame.trust for frames in found.stacks.values() for frame in frames[1:]} <= {"scan"}


def test_a_sysroot_without_the_libraries_is_a_gap(one: Taken, tmp_path: Path) -> None:
    """Libraries that are not where the sysroot says are named, with the threads whose frames are guesses."""
    found = unwind(one.core, one.exe, deadline_s=DEADLINE, sysroot=tmp_path)
    gap = next(gap for gap in found.gaps if "guessed" in reason(gap))
    assert "libc" in gap.subject
    assert "--sysroot" in (remedy(gap) or "")


def test_a_sysroot_with_the_libraries_gives_whole_stacks(one: Taken, tmp_path: Path) -> None:
    """A copy of the libraries elsewhere serves, and modules keep the names that the core has for them."""
    for file in {file.path for file in ElfCore(str(one.core)).files if ".so" in file.path}:
        copy = Path(f"{tmp_path}{file}")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.symlink_to(file)
    found = unwind(one.core, one.exe, deadline_s=DEADLINE, sysroot=tmp_path)
    plain = unwind(one.core, one.exe, deadline_s=DEADLINE)
    shown = {tid: [(f.function, f.module) for f in frames] for tid, frames in found.stacks.items()}
    assert shown == {tid: [(f.function, f.module) for f in frames] for tid, frames in plain.stacks.items()}


def test_a_stack_deeper_than_the_bound_keeps_its_innermost_frames(take_core: Take) -> None:
    """Recursion through C: 1,024 frames and a gap that says that the older ones are left out."""
    body = """
def deep(n=200): return sorted([n], key=deep_key) if n else time.sleep(10_000)
def deep_key(n): return deep(n - 1)
threading.stack_size(16 << 20)
"""
    taken = take_core(body, ["deep"])
    found = unwind(taken.core, taken.exe, deadline_s=DEADLINE)
    frames = found.stacks[taken.tids["deep"]]
    assert len(frames) == 1024
    assert "libc" in (frames[0].module or "")
    assert any("older ones are left out" in reason(gap) for gap in found.gaps)


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02\x01\x01", os.urandom(4096), b"#!/bin/sh\ntouch pwned\n"])
def test_what_is_no_core_is_one_sentence(gdb: Path, one: Taken, tmp_path: Path, content: bytes) -> None:
    """Empty, cut short, random, a script: ToolFailed with a next step, and nothing is run."""
    core = tmp_path / "core"
    core.write_bytes(content)
    with pytest.raises(ToolFailed) as caught:
        unwind(core, one.exe, deadline_s=DEADLINE)
    assert caught.value.next


def test_a_core_with_overwritten_memory_keeps_the_other_threads(one: Taken, tmp_path: Path) -> None:
    """Where a thread's stack is overwritten with noise, that thread's stack ends early, with a gap; the others stay."""
    image = ElfCore(str(one.core))
    victim = next(thread for thread in image.threads if thread.tid == one.tids["sleeping"])
    stack = next(s for s in image._loads if s.vaddr <= victim.regs["rsp"] < s.vaddr + s.memsz)
    noise = tmp_path / "core"
    shutil.copyfile(one.core, noise)
    with noise.open("r+b") as file:
        file.seek(stack.offset + victim.regs["rsp"] - stack.vaddr)
        file.write(b"\xa5" * (stack.vaddr + stack.memsz - victim.regs["rsp"]))
    found = unwind(noise, one.exe, deadline_s=DEADLINE)
    whole = unwind(one.core, one.exe, deadline_s=DEADLINE)
    assert found.stacks[victim.tid][:1] == whole.stacks[victim.tid][:1]
    assert len(found.stacks[victim.tid]) < len(whole.stacks[victim.tid])
    assert any(str(victim.tid) in gap.subject and "guessed or left out" in reason(gap) for gap in found.gaps)
    for tid in set(whole.stacks) - {victim.tid}:
        assert found.stacks[tid] == whole.stacks[tid]
