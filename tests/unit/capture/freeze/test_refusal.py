"""Why ptrace is refused, and how much may be held in memory: from files made for the test."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict

import pytest

from postmortem.capture.freeze import memorybudget, refusal
from postmortem.capture.procfs import parsers
from postmortem.errors import PermissionRefused

GIB = 1 << 30


def explained(monkeypatch: pytest.MonkeyPatch, status: Dict[str, str], owner: int, scope: int) -> PermissionRefused:
    class Owner:
        st_uid = owner

    with monkeypatch.context() as patch:
        patch.setattr(parsers, "status", lambda _path: status)
        patch.setattr(refusal, "yama_scope", lambda: scope)
        patch.setattr(os, "stat", lambda _path: Owner)
        return refusal.explain(77)


def test_each_cause_has_its_sentence_and_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another tracer, another user, an unreadable process, Yama, a container: told apart, none without a remedy."""
    me = os.geteuid()
    uid = f"{me} {me} {me} {me}"
    other = f"{me + 1} {me + 1} {me + 1} {me + 1}"
    cases = [
        ({"Uid": uid, "TracerPid": "4194305"}, me, 0, "traced by process 4194305", "debugger"),
        (
            {"Uid": f"{me} {me + 1} 0 0", "Name": "su"},
            me + 1,
            0,
            f"(su) runs with the rights of another user (uid {me + 1})",
            "sudo",
        ),
        ({"Uid": other, "TracerPid": "0"}, me + 1, 0, "another user", "sudo"),
        ({"Uid": uid, "TracerPid": "0"}, me + 1, 1, "PR_SET_DUMPABLE", "sudo"),
        ({"Uid": uid, "TracerPid": "0"}, me, 1, "ptrace_scope is 1", "sysctl kernel.yama.ptrace_scope=0"),
        ({"Uid": uid, "TracerPid": "0"}, me, 0, "containers", "--cap-add=SYS_PTRACE"),
    ]
    for status, owner, scope, cause, remedy in cases:
        error = explained(monkeypatch, status, owner, scope)
        assert cause in str(error)
        assert remedy in error.next
        assert "77" in str(error)


def machine(root: Path, available: int, cgroup: str, **files: int) -> Path:
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "meminfo").write_text(f"MemTotal: 99999999 kB\nMemAvailable:   {available >> 10} kB\n")
    (root / "proc" / "self" / "cgroup").write_text(cgroup)
    for name, value in files.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return root


def test_plenty_is_bounded(tmp_path: Path) -> None:
    """Never more than the limit, however large the machine."""
    assert memorybudget.memory_to_hold(machine(tmp_path, 100 * GIB, "0::/\n")) == memorybudget.HOLD_LIMIT


def test_a_container_counts_more_than_its_machine(tmp_path: Path) -> None:
    """Version 2: what memory.max leaves, a quarter of it."""
    limits = {"box__memory_dot_max": 512 << 20, "box__memory_dot_current": 448 << 20}
    assert memorybudget.memory_to_hold(machine(tmp_path, 100 * GIB, "0::/box\n", **limits)) == 16 << 20


def test_the_same_under_version_1(tmp_path: Path) -> None:
    """The memory controller's own tree."""
    limits = {"memory__box__memory_dot_limit_in_bytes": 300 << 20, "memory__box__memory_dot_usage_in_bytes": 400 << 20}
    assert memorybudget.memory_to_hold(machine(tmp_path, GIB, "4:cpu:/\n5:memory,x:/box\n", **limits)) == 0


def test_unknown_is_nothing(tmp_path: Path) -> None:
    """Where nothing tells, nothing is held: the copy goes to the file."""
    assert memorybudget.memory_to_hold(tmp_path) == 0
