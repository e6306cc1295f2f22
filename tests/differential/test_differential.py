"""Same threads, same Python frames, same lines, same GIL holder: ours, py-spy's, pystack's, the target's own."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set

import pytest

from ..support.interpreters import Program, matrix
from ..support.takingcores import kernel_core
from . import peers
from .known import expected

pytestmark = [pytest.mark.live]

PROGRAM = Path(__file__).with_name("program.py")
PEERS: Dict[str, Any] = {
    "py-spy": (peers.pyspy_live, peers.pyspy_core),
    "pystack": (peers.pystack_live, peers.pystack_core),
}


#: py-spy takes the version of a stripped interpreter from the first text in its memory that looks like one ("3.96.163"):
#: which that is, is chance, and another process's memory has another. Whoever always misreads it still fails.
_GUESSED_WRONG = "Unsupported version of Python"
_ATTEMPTS = 3


class Target(NamedTuple):
    id: str  # of the interpreter
    mode: str
    account: peers.Said
    ours: Dict[str, peers.Said]  # by "live", "core"
    theirs: Dict[str, Any]  # by "PEER how": Said or the Failed it raised


@pytest.fixture(scope="module")
def observe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Any, str], Target]]:
    """Runs the program once for an interpreter and a mode, asks everybody, and remembers."""
    seen: Dict[str, Target] = {}

    def ask(python: Any, mode: str) -> Target:
        key = f"{python.id} {mode}"
        for _attempt in range(_ATTEMPTS):
            if key not in seen or _misread(seen[key]):
                seen[key] = _observe(python, mode, tmp_path_factory.mktemp("target"))
        return seen[key]

    yield ask


def _observe(python: Any, mode: str, folder: Path) -> Target:
    with Program(python, PROGRAM.read_text(encoding="utf-8"), folder, mode, cwd=folder) as program:
        told = json.loads(program.lines[0])
        _until_parked(program.pid, told["recorder"])
        exe = Path(os.readlink(f"/proc/{program.pid}/exe"))
        ours = {"live": peers.ours_live(program.pid)}
        theirs: Dict[str, Any] = {}
        for name, (live, _core) in PEERS.items():
            theirs[f"{name} live"] = _answer(live, program.pid)
            _until_parked(program.pid, told["recorder"])
        core = kernel_core(program, folder)
    ours["core"] = peers.ours_core(core)
    for name, (_live, of_core) in PEERS.items():
        theirs[f"{name} core"] = _answer(of_core, core, exe)
    core.unlink()
    threads = {int(tid): [tuple(row) for row in thread["frames"]] for tid, thread in told["threads"].items()}
    holder = told["recorder"] if mode == "gil" and not python.free_threaded else None
    return Target(python.id, mode, peers.Said(threads, holder), ours, theirs)


def _misread(target: Target) -> bool:
    return target.id.endswith("-stripped") and any(_GUESSED_WRONG in str(said) for said in target.theirs.values())


def _answer(ask: Callable[..., peers.Said], *arguments: object) -> Any:
    try:
        return ask(*arguments)
    except peers.Failed as exc:
        return exc


def _until_parked(pid: int, recorder: int) -> None:
    """All threads sleep, the recorder in its last system call (pause or futex)."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        states = []
        for task in Path(f"/proc/{pid}/task").iterdir():
            states.append((task / "stat").read_text().rpartition(")")[2].split()[0])
        call = Path(f"/proc/{pid}/task/{recorder}/syscall").read_text().split()[0]
        if set(states) == {"S"} and call in ("34", "202"):
            return
        time.sleep(0.02)
    raise AssertionError("the target did not come to rest")


@pytest.mark.parametrize("mode", ["idle", "gil"])
@pytest.mark.parametrize("how", ["live", "core"])
@pytest.mark.parametrize("python", matrix(ctypes=True))
def test_we_say_what_the_target_says(python: Any, how: str, mode: str, observe: Callable[[Any, str], Target]) -> None:
    """Every thread, every frame, every line, and the holder of the GIL, without exception."""
    target = observe(python, mode)
    said = target.ours[how]
    assert set(said.threads) == set(target.account.threads)
    for tid, rows in target.account.threads.items():
        assert said.threads[tid] == rows
    assert said.holder == target.account.holder


@pytest.mark.parametrize("mode", ["idle", "gil"])
@pytest.mark.parametrize("how", ["live", "core"])
@pytest.mark.parametrize("peer", sorted(PEERS))
@pytest.mark.parametrize("python", matrix(ctypes=True))
def test_peers_differ_only_where_it_is_written(
    python: Any, peer: str, how: str, mode: str, observe: Callable[[Any, str], Target]
) -> None:
    """A peer's difference from the target's account is on the list, and what is on the list differs."""
    target = observe(python, mode)
    differences = _differences(target.theirs[f"{peer} {how}"], target.account)
    assert differences == {d.what for d in expected(peer, how, target.id, mode)}, _shown(target, peer, how)


def _differences(said: Any, account: peers.Said) -> Set[str]:
    if isinstance(said, peers.Failed):
        return {"fails"}
    found = set()
    if set(said.threads) != set(account.threads):
        found.add("threads")
    if not all(_same(said.threads[tid], rows) for tid, rows in account.threads.items() if tid in said.threads):
        found.add("frames")
    if said.holder != account.holder:
        found.add("holder")
    return found


def _same(theirs: List[peers.Row], own: List[peers.Row]) -> bool:
    """From 3.11 on py-spy tells the qualified name as the name."""
    return len(theirs) == len(own) and all(t[:2] == o[:2] and t[2] in o[2:] for t, o in zip(theirs, own))


def _shown(target: Target, peer: str, how: str) -> str:
    """Both accounts of the threads that differ."""
    said = target.theirs[f"{peer} {how}"]
    if isinstance(said, peers.Failed):
        return str(said)
    lines: List[str] = [f"holder {said.holder}, in truth {target.account.holder}"]
    for tid in sorted(set(said.threads) | set(target.account.threads)):
        theirs: Optional[List[peers.Row]] = said.threads.get(tid)
        own = target.account.threads.get(tid)
        if theirs is None or own is None or not _same(theirs, own):
            lines += [f"thread {tid}", f"  {peer}: {theirs}", f"  target: {own}"]
    return "\n".join(lines)
