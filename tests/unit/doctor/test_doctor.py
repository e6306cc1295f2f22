"""The examination of the machine: tools are tried, what is missing comes with a remedy."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from pathlib import Path
from typing import Dict, NamedTuple, Tuple

import pytest

from postmortem import doctor
from postmortem.capture.freeze import memorybudget as capture_room
from postmortem.capture.freeze import ptrace, refusal, vmread
from postmortem.capture.procfs import cgroups
from postmortem.cli import commands
from postmortem.doctor import confinement, rights, room, tools


def test_every_check_has_a_finding_and_every_failure_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also on a machine without any tool."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for check in doctor.checks():
        assert check.found
        assert check.remedy or check.ok is not False


def test_where_no_process_can_be_started_the_other_checks_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit that is reached is the finding."""

    def fork() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    found = {check.name: check for check in doctor.checks()}
    assert "Resource temporarily unavailable" in found["trace"].found and found["trace"].remedy
    assert found["seccomp"].found


def test_a_tool_that_does_not_run_is_not_taken_for_one_that_does(tmp_path: Path) -> None:
    """Found on PATH is not enough."""
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert tools.output("gdb", [str(broken)]) == ""
    assert tools.output("gdb", [str(tmp_path / "missing")]) == ""
    assert tools.output("gdb", ["/bin/echo", "fine"]) == "fine"


def test_tracing_an_own_child_is_really_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A living child of this very process is seized, and none is left behind."""
    if rights.trace_own_child() is not None:
        pytest.skip("ptrace is refused here")
    parents = []
    really = ptrace.seize

    def seize(tid: int) -> None:
        with open(f"/proc/{tid}/stat", encoding="ascii") as stat:
            parents.append(int(stat.read().rsplit(")", 1)[1].split()[1]))
        really(tid)

    monkeypatch.setattr(ptrace, "seize", seize)
    assert rights.trace_own_child() is None
    assert parents == [os.getpid()]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_refused_trace_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seccomp profile that forbids ptrace shows as `no`, with the reason and what to do; the child still ends."""

    def seize(tid: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(ptrace, "seize", seize)
    check = rights.trace()
    assert (check.ok, check.mark, check.needed) == (False, "no", True)
    assert "refused" in check.found or "forbids" in check.found
    assert check.remedy
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_yama_that_keeps_even_parents_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """From scope 2 on an own child is not to be traced either: the remedy is another than a container's."""

    def seize(tid: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(ptrace, "seize", seize)
    monkeypatch.setattr(refusal, "yama_scope", lambda: 2)
    check = rights.trace()
    assert check.ok is False and "ptrace_scope is 2" in check.found and "sysctl" in check.remedy


@pytest.mark.live
def test_seizing_and_letting_go_works_or_is_explained() -> None:
    """The real request: the child ends by itself afterwards, whatever the kernel answered."""
    refused = rights.trace_own_child()
    assert refused is None or refused.next
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize(
    ("pattern", "inside", "ok", "word"),
    [
        ("core.%p", "", True, "core.%p"),
        ("|/usr/lib/systemd/systemd-coredump %P", "", True, "analyze coredumpctl:last"),
        ("|/usr/lib/systemd/systemd-coredump %P", "docker", None, "outside of this container"),
        ("|/usr/share/apport/apport %p", "", None, "apport"),
        ("|/usr/share/apport/apport %p", "podman", None, "outside of this container"),
        ("|/usr/share/apport/apport %p", "", None, "/var/crash/"),
        ("|/usr/libexec/abrt-hook-ccpp %s", "", None, "/var/spool/abrt/"),
        ("|/opt/own/handler %p", "", None, "/opt/own/handler"),
        ("", "", None, "unknown"),
    ],
)
def test_core_pattern(pattern: str, inside: str, ok: object, word: str) -> None:
    """Where crashes go, and which of that postmortem can use; a handler runs outside of the container."""
    check = room.core_pattern(pattern, inside)
    assert check.ok is ok
    assert word in check.found
    assert check.remedy or ok


def test_where_the_core_of_a_command_would_land(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In its working directory; another pattern's folder may be missing."""
    monkeypatch.chdir(tmp_path)
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern[:1] in ("", "/", "|", "@"):
        pytest.skip(f"core_pattern is {pattern!r}")
    assert str(tmp_path) in room.core_pattern().found


@pytest.mark.parametrize(
    ("limits", "ok", "word"),
    [
        ((0, 0), None, "hard limit is 0"),
        ((0, resource.RLIM_INFINITY), None, "soft 0 bytes, hard unlimited"),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), True, "unlimited"),
    ],
)
def test_the_limit_of_core_files(
    monkeypatch: pytest.MonkeyPatch, limits: Tuple[int, int], ok: object, word: str
) -> None:
    """A hard limit of 0 rules the kernel's cores out; a soft one can be raised."""
    monkeypatch.setattr(resource, "getrlimit", lambda _which: limits)
    check = room.core_limit()
    assert check.ok is ok and word in check.found
    assert check.remedy or ok


class Usage(NamedTuple):
    free: int


def test_no_room_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk and a small memory limit are worth knowing; a folder that cannot be written rules a capture out."""
    monkeypatch.setattr(capture_room, "memory_to_hold", lambda: 5 << 20)
    assert (room.memory().ok, "5 MB" in room.memory().found) == (None, True)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(10 << 20))
    assert (room.disk().ok, "10 MB" in room.disk().found) == (None, True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    check = room.disk()
    assert check.ok is False and check.needed and "-o DIR" in check.remedy


@pytest.mark.parametrize(
    ("environment", "mark", "kind", "remedy"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, ".dockerenv", "kubernetes", "kubectl debug"),
        ({}, ".dockerenv", "docker", "docker run --cap-add=SYS_PTRACE"),
        ({}, "run/.containerenv", "podman", "podman run --cap-add=SYS_PTRACE"),
        ({}, "etc", None, "sudo"),
    ],
)
def test_each_kind_of_container_has_its_own_flag(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environment: Dict[str, str], mark: str, kind: object, remedy: str
) -> None:
    """What to type depends on who started the container."""
    (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mark).touch()
    assert confinement.container(environment, f"{tmp_path}/") == kind
    monkeypatch.setattr(confinement, "container", lambda: kind)
    assert remedy in confinement.with_ptrace()
    assert confinement.without_filter()


@pytest.mark.parametrize(
    ("uid_map", "outer"),
    [
        ("         0          0 4294967295\n", None),
        ("         0       1000          1\n", 1000),
        ("0 1000 1\n1 100000 65536\n", 1000),
        ("1000 1000 1\n", -1),
        ("", None),
    ],
)
def test_user_namespaces_are_recognised(uid_map: str, outer: object) -> None:
    """Rootless containers map root to somebody; the machine's own namespace maps every id to itself."""
    assert confinement.outer_root(uid_map) == outer


PROC = "23 28 0:21 / /proc rw,nosuid,relatime shared:12 - proc proc rw{}\n"


@pytest.mark.parametrize(
    ("mountinfo", "uid", "ok", "word"),
    [
        (PROC.format(""), 1000, True, "every process"),
        (PROC.format(",hidepid=2"), 0, True, "to root"),
        (PROC.format(",hidepid=2"), 1000, None, "hidepid=2"),
        (PROC.format("") + PROC.format(",hidepid=invisible"), 1000, None, "hidepid=invisible"),
        (PROC.format(",hidepid=off"), 1000, True, "every process"),
        ("1 2 0:3 / / rw - ext4 /dev/x rw\n", 1000, False, "not mounted"),
    ],
)
def test_what_proc_hides(monkeypatch: pytest.MonkeyPatch, mountinfo: str, uid: int, ok: object, word: str) -> None:
    """The mount on top counts."""
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    check = confinement.proc(mountinfo)
    assert check.ok is ok and word in check.found
    assert check.remedy or ok


def test_control_groups_out_of_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them a frozen process looks like one that hangs: that is said."""
    monkeypatch.setattr(confinement, "_mountinfo", lambda: "1 2 0:3 / / rw - ext4 /dev/x rw\n")
    check = confinement.control_groups()
    assert check.ok is None and "not mounted" in check.found and check.remedy
    monkeypatch.undo()
    monkeypatch.setattr(cgroups, "folder", lambda mount, path: None)
    check = confinement.control_groups()
    assert check.ok is None and check.remedy


@pytest.mark.parametrize(("mode", "ok"), [("0", True), ("2", None), ("", None)])
def test_seccomp(monkeypatch: pytest.MonkeyPatch, mode: str, ok: object) -> None:
    """None is good, a filter is worth knowing, and so is not knowing."""
    monkeypatch.setattr(confinement, "_status", lambda: {"Seccomp": mode} if mode else {})
    assert confinement.seccomp().ok is ok


def test_memory_that_cannot_be_read_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """With neither way there is no core; with the slower one there is, and that is said."""
    monkeypatch.setattr(vmread, "read", lambda *_: False)
    slower = rights.memory()
    assert slower.ok and "twice as long" in slower.found
    monkeypatch.setattr(rights, "_reads_file", lambda *_: False)
    none = rights.memory()
    assert (none.ok, none.needed) == (False, True) and none.remedy


@pytest.mark.parametrize(
    ("ok", "needed", "status"), [(False, True, 1), (False, False, 0), (None, True, 0), (True, True, 0)]
)
def test_the_exit_status_says_whether_something_needed_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ok: bool, needed: bool, status: int
) -> None:
    """1 only for what a capture or analysis would lack."""
    monkeypatch.setattr(doctor, "checks", lambda: [doctor.Check("gdb", ok, "as it is", "do this", needed)])
    assert commands.main(["doctor"]) == status
    said = capsys.readouterr().out
    assert "gdb: as it is" in said
    assert "do this" in said
