"""Surroundings of cases: what is written where, and that all of it is taken down again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from . import staging
from .staging import STAGED, NotStaged, staged


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the control groups, whose groups have the files that a kernel makes."""
    monkeypatch.setattr(staging, "_GROUPS", tmp_path)
    real, removed = Path.mkdir, Path.rmdir

    def mkdir(path: Path, *args: object, **more: object) -> None:
        real(path)
        if path.name.startswith("pm-case-"):
            for name in ("cgroup.procs", "cpu.max", "memory.max", "cgroup.freeze"):
                (path / name).write_text("")

    def rmdir(path: Path) -> None:
        for file in path.iterdir():
            file.unlink()
        removed(path)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(Path, "rmdir", rmdir)
    return tmp_path


def test_nothing_asked_for_is_nothing_staged() -> None:
    """The program runs as it is, with nobody at its keyboard."""
    with staged(()) as stage:
        assert (stage.enter, stage.session, stage.freeze, stage.stdin) == ([], [], None, subprocess.DEVNULL)


def test_a_quota_and_a_limit_are_written(groups: Path) -> None:
    """In groups of their own, into which the program goes before it begins; gone afterwards."""
    with staged(("cpu-quota 0.5", "memory-limit 64M")) as stage:
        paths = [Path(path) for path in stage.environment["GROUPS_OF_CASE"].split()]
        assert [path.parent for path in paths] == [groups, groups]
        assert (paths[0] / "cpu.max").read_text() == "50000 100000"
        assert (paths[1] / "memory.max").read_text() == str(64 << 20)
        done = subprocess.run(
            [*stage.enter, "echo", "begun"], env={**os.environ, **stage.environment}, capture_output=True, text=True,
            timeout=60, check=True,
        )
        assert done.stdout == "begun\n"
        assert all((path / "cgroup.procs").read_text().strip().isdigit() for path in paths)
        for path in paths:
            (path / "cgroup.procs").write_text("")
    assert not list(groups.iterdir())


def test_it_is_frozen_when_it_is_told_to(groups: Path) -> None:
    """Not before; and thawed before it is taken down."""
    with staged(("frozen",)) as stage:
        (group,) = groups.iterdir()
        assert (group / "cgroup.freeze").read_text() == ""
        assert stage.freeze is not None
        stage.freeze()
        assert (group / "cgroup.freeze").read_text() == "1"
    assert not list(groups.iterdir())


def test_a_failure_within_leaves_nothing(groups: Path) -> None:
    """Whatever is raised, the groups are gone."""
    with pytest.raises(ZeroDivisionError), staged(("cpu-quota 1", "frozen")):
        raise ZeroDivisionError
    assert not list(groups.iterdir())


def test_a_terminal_has_nobody_at_it() -> None:
    """A terminal indeed, that says nothing; closed afterwards."""
    with staged(("terminal",)) as stage:
        assert os.isatty(stage.stdin)
        assert stage.session[0] == "setsid"
        keyboard = stage.stdin
    with pytest.raises(OSError):
        os.fstat(keyboard)


def test_what_cannot_be_staged_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence: of an unknown word, and of a machine without control groups."""
    with pytest.raises(NotStaged, match="earthquake"), staged(("earthquake 7",)):
        pass
    monkeypatch.setattr(staging, "_GROUPS", tmp_path / "none")
    for one in STAGED:
        if one not in ("terminal",):
            word = {"cpu-quota": "cpu-quota 1", "memory-limit": "memory-limit 1M"}.get(one, one)
            with pytest.raises(NotStaged, match="control group"), staged((word,)):
                pass
