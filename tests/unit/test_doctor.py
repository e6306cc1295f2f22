"""The examination of the machine: tools are tried, what is missing comes with a remedy."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from postmortem import cli, doctor


def test_every_check_has_a_finding_and_every_failure_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also on a machine without any tool."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for check in doctor.checks():
        assert check.found
        assert check.remedy or check.ok is not False


def test_a_tool_that_does_not_run_is_not_taken_for_one_that_does(tmp_path: Path) -> None:
    """Found on PATH is not enough."""
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert doctor._output([str(broken)]) == ""
    assert doctor._output([str(tmp_path / "missing")]) == ""
    assert doctor._output(["/bin/echo", "fine"]) == "fine"


def test_tracing_an_own_child_is_really_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A living child of this very process is seized, and none is left behind."""
    parents = []

    def seize(tid: int) -> None:
        with open(f"/proc/{tid}/stat", encoding="ascii") as stat:
            parents.append(int(stat.read().rsplit(")", 1)[1].split()[1]))

    monkeypatch.setattr(doctor.ptrace, "seize", seize)
    assert doctor.trace_own_child() is None
    assert parents == [os.getpid()]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_refused_trace_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seccomp profile that forbids ptrace shows as `no`, with the reason and what to do; the child still ends."""

    def seize(tid: int) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(doctor.ptrace, "seize", seize)
    check = doctor._ptrace_child()
    assert (check.ok, check.mark, check.needed) == (False, "no", True)
    assert "refused" in check.found or "forbids" in check.found
    assert check.remedy
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.live
def test_seizing_and_letting_go_works_or_is_explained() -> None:
    """The real request: the child ends by itself afterwards, whatever the kernel answered."""
    refused = doctor.trace_own_child()
    assert refused is None or refused.next
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize(
    ("pattern", "ok", "word"),
    [
        ("core.%p", True, "core.%p"),
        ("|/usr/lib/systemd/systemd-coredump %P", True, "coredumpctl dump"),
        ("|/usr/share/apport/apport %p", None, "apport"),
        ("", None, "unknown"),
    ],
)
def test_core_pattern(monkeypatch: pytest.MonkeyPatch, pattern: str, ok: object, word: str) -> None:
    """Where crashes go, and which of that postmortem can use."""
    monkeypatch.setattr(doctor, "_first_line", lambda path: pattern)
    check = doctor._core_pattern()
    assert check.ok is ok
    assert word in check.found


@pytest.mark.parametrize(
    ("ok", "needed", "status"), [(False, True, 1), (False, False, 0), (None, True, 0), (True, True, 0)]
)
def test_the_exit_status_says_whether_something_needed_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ok: bool, needed: bool, status: int
) -> None:
    """1 only for what a capture or analysis would lack."""
    monkeypatch.setattr(doctor, "checks", lambda: [doctor.Check("gdb", ok, "as it is", "do this", needed)])
    assert cli.main(["doctor"]) == status
    said = capsys.readouterr().out
    assert "gdb: as it is" in said
    assert "do this" in said
