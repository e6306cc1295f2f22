"""A core that the kernel of an aarch64 machine wrote, read on this one. ``python -m tests.foreign`` has made it."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

from postmortem.arch.registersets import THREAD_POINTER
from postmortem.memory import ElfCore
from postmortem.native import find_gdb

from ..support.required import lacking

HERE = Path(__file__).resolve().parent
PACKED = HERE / "aarch64.core.xz"
LIBC = "/lib/aarch64-linux-gnu/libc.so.6"
SVC = (0xD4000001).to_bytes(4, "little")
EINTR = (1 << 64) - 4


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpacked, and what is zero in it a hole."""
    path = tmp_path_factory.mktemp("aarch64") / "core"
    with lzma.open(PACKED) as packed, path.open("wb") as plain:
        while True:
            piece = packed.read(1 << 16)
            if not piece:
                break
            if piece.strip(b"\0"):
                plain.write(piece)
            else:
                plain.seek(len(piece), os.SEEK_CUR)
        plain.truncate()
    return path


@pytest.fixture(scope="module")
def sysroot(core: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a libc.so.6 that has the headers and the build-id of the core's, and of its code the instruction that every
    thread was at: the kernel puts a call that is to be made again back on ``svc``, and leaves others behind it."""
    root = tmp_path_factory.mktemp("sysroot")
    image = ElfCore(str(core))
    base = image.base(LIBC)
    assert base is not None
    file = Path(f"{root}{LIBC}")
    file.parent.mkdir(parents=True)
    with file.open("wb") as stream:
        stream.write(image.read(base, 4096))
        for thread in image.threads:
            at = thread.regs["pc"] - (4 if thread.regs["x0"] == EINTR else 0)
            stream.seek(at - base)
            stream.write(SVC)
        stream.truncate(2 << 20)
    return root


def analyzed(*arguments: object, env: Optional[Dict[str, str]] = None) -> Dict[str, Any]:
    command = [sys.executable, "-m", "postmortem", "analyze", "-f", "json", *map(str, arguments)]
    everything = {**os.environ, **(env or {})}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=everything, check=False)
    assert done.returncode == 0, done.stderr
    found: Dict[str, Any] = json.loads(done.stdout)
    return found


def threads(report: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    return {thread["name"]: thread for thread in report["processes"][0]["threads"]}


def test_the_deadlock_is_proven_without_a_file_of_that_machine() -> None:
    """Compressed as it came: every thread with its Python stack, both locks with their holders, the verdict; and what takes
    its libraries is a gap that says so."""
    report = analyzed(PACKED)
    assert report["verdict"] == "lock-order-deadlock"
    assert report["findings"][0]["confidence"] == "proven"
    found = threads(report)
    assert sorted(found) == sorted(
        ["MainThread", "transfer", "audit", "nap", "from_pipe", "from_socket", "on_events", "for_child", "for_notice"]
    )
    for name in set(found) - {"MainThread"}:
        assert name in [frame["function"] for frame in found[name]["python"]], name
    locks = {r["description"]: r for r in report["processes"][0]["resources"] if r["kind"] == "lock"}
    assert locks["Lock first"]["owner_tid"] == found["transfer"]["tid"]
    assert locks["Lock second"]["owner_tid"] == found["audit"]["tid"]
    assert {lock["owner_basis"] for lock in (locks["Lock first"], locks["Lock second"])} == {"with-slot"}
    assert found["nap"]["wait"] is None
    assert any(
        f"thread {found['nap']['tid']}" in gap["subject"] and "--sysroot" in gap["remedy"] for gap in report["gaps"]
    )
    assert (
        any("not of the core's machine" in gap["reason"] for gap in report["gaps"])
        or not Path("/usr/bin/python3.11").exists()
    )


def test_each_thread_waits_in_its_own_system_call(core: Path, sysroot: Path) -> None:
    """With the C library at hand, by aarch64's numbers: the kernel has restored the arguments or written -EINTR over one."""
    report = analyzed(core, "--sysroot", sysroot)
    waits = {name: thread["wait"] for name, thread in threads(report).items()}
    told = {name: (wait["kind"], wait["syscall"]) for name, wait in waits.items()}
    assert told == {
        "MainThread": ("lock", "futex"),
        "transfer": ("lock", "futex"),
        "audit": ("lock", "futex"),
        "nap": ("sleep", "clock_nanosleep"),
        "from_pipe": ("other", "read"),
        "from_socket": ("socket", "ppoll"),
        "on_events": ("event-loop", "epoll_pwait"),
        "for_child": ("process", "wait4"),
        "for_notice": ("condition", "futex"),
    }
    assert (waits["nap"]["endless"], waits["on_events"]["endless"]) == (False, True)
    assert (waits["from_pipe"]["fd"], waits["for_child"]["pid"] > 0) == (3, True)
    assert not any("system call of thread" in gap["subject"] for gap in report["gaps"])


def test_thread_pointers_are_of_their_own_note(core: Path) -> None:
    """NT_ARM_TLS follows the registers of its thread; each has another, in memory that the core has."""
    image = ElfCore(str(core))
    pointers: List[int] = [thread.regs[THREAD_POINTER] for thread in image.threads]
    assert len(set(pointers)) == len(pointers) == 9
    assert all(image.mapping(pointer) is not None for pointer in pointers)


def test_a_gdb_that_knows_the_machine_unwinds_it(core: Path, sysroot: Path) -> None:
    """gdb-multiarch gives the innermost frame at least, in the file that the core maps there."""
    if find_gdb("aarch64") is None:
        lacking("gdb-multiarch is missing")
    found = threads(analyzed(core, "--sysroot", sysroot))
    assert {thread["native"][0]["module"] for thread in found.values()} == {LIBC}


def test_without_such_a_gdb_there_is_a_sentence(core: Path, tmp_path: Path) -> None:
    """A gdb for this machine alone is not even tried on it, and the Python side is whole."""
    gdb = tmp_path / "gdb"
    gdb.write_text("#!/bin/sh\nexit 1\n")
    gdb.chmod(0o755)
    report = analyzed(core, env={"POSTMORTEM_GDB": str(gdb)})
    (gap,) = [gap for gap in report["gaps"] if gap["source"] == "gdb"]
    assert "cannot read cores of aarch64" in gap["reason"]
    assert "gdb-multiarch" in gap["remedy"]
    assert report["verdict"] == "lock-order-deadlock"
