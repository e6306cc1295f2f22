"""Stamps, resumption and complaints of ``make interpreters``, with a set-up that only writes a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import List

import pytest

from tests.interpreters import __main__ as command
from tests.interpreters import apt, build, steps, wanted
from tests.interpreters.steps import Unavailable
from tests.interpreters.wanted import BY_ID, MATRIX, Wanted, find, required, stamp

THREADED = BY_ID["3.13t"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test touches the user's interpreters."""
    folder = tmp_path / "interpreters"
    monkeypatch.setenv("POSTMORTEM_INTERPRETERS", str(folder))
    return folder


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> List[str]:
    """Ids in the order in which they were set up; "" first in the list makes the next one break off."""
    done: List[str] = []

    def set_up(one: Wanted, source: object, folder: Path) -> Path:
        assert list(folder.iterdir()) == []
        (folder / "half").touch()
        if done == [""]:
            done.clear()
            raise Unavailable("the compiler is not installed")
        done.append(one.id)
        (folder / one.program).symlink_to(sys.executable)
        return folder / one.program

    monkeypatch.setattr(build, "set_up", set_up)
    monkeypatch.setattr(command, "PrivateApt", type("Apt", (), {"__init__": lambda *_: None, "clean": lambda _: None}))
    monkeypatch.setattr(command, "probe", lambda one, program: "3.13.99")
    return done


def test_what_is_finished_is_left_alone(builds: List[str]) -> None:
    """The second run finds what the first one set up."""
    assert find(THREADED) is None
    assert command.set_up_all(["3.13t"]) == []
    assert command.set_up_all(["3.13t"]) == []
    assert builds == ["3.13t"]
    found = find(THREADED)
    assert found is not None
    assert (found.id, found.version, found.free_threaded, found.debug) == ("3.13t", (3, 13), True, False)


def test_an_interrupted_run_resumes(builds: List[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What broke off leaves no stamp and a sentence; the next run starts that one from nothing."""
    builds.append("")
    assert command.set_up_all(["3.13t"]) == ["3.13t"]
    assert "3.13t: cannot be had: the compiler is not installed" in capsys.readouterr().err
    assert find(THREADED) is None
    assert command.set_up_all(["3.13t"]) == []
    assert builds == ["3.13t"]


def test_another_recipe_or_a_lost_program_is_made_anew(builds: List[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A stamp counts only for the recipe that wrote it, and only while its program is there."""
    command.set_up_all(["3.13t"])
    found = find(THREADED)
    assert found is not None
    Path(found.path).unlink()
    assert find(THREADED) is None
    command.set_up_all(["3.13t"])
    assert find(THREADED) is not None
    monkeypatch.setattr(wanted, "RECIPE", wanted.RECIPE + 1)
    assert find(THREADED) is None
    stamp(THREADED).write_text("{")
    assert find(THREADED) is None


def test_optional_ones_fail_nothing(builds: List[str]) -> None:
    """Where the archive lacks sources that no release promises, that is said and no failure."""
    builds.append("")
    assert command.set_up_all(["3.14t"]) == []


def test_a_machine_without_apt_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names the tool and where it comes from."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="apt-get is not installed: it belongs to Debian's package apt"):
        apt.PrivateApt(tmp_path)
    with pytest.raises(Unavailable, match="no C compiler and make are installed"):
        build._need_tools()


def test_complaints_name_the_first_error() -> None:
    """A failed program's first error is shown, not its other lines; a missing program is named."""
    script = "echo start; echo 'E: no such package' >&2; echo 'more' >&2; exit 3"
    with pytest.raises(Unavailable, match="sh failed: E: no such package"):
        steps.run(["sh", "-c", script])
    with pytest.raises(Unavailable, match="no-such-program is not installed"):
        steps.run(["no-such-program"])


def test_a_program_that_is_another_version_is_refused() -> None:
    """The probe runs the interpreter and compares it with the table."""
    other = next(one for one in MATRIX if one.version != sys.version_info[:2])
    with pytest.raises(Unavailable, match="says version"):
        command.probe(other, Path(sys.executable))


def test_ci_requires_the_whole_matrix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All that are set up even where none is yet, what the machine brought along, a 3.11 in any case; nothing optional."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    ids = required()
    assert {one.id for one in MATRIX if one.set_up and not one.optional} <= set(ids)
    assert {"3.11", "3.11-stripped"} & set(ids)
    assert not {one.id for one in MATRIX if one.optional} & set(ids)
    monkeypatch.setattr(wanted, "_find_distribution", lambda _: None)
    assert "3.11" in required()


def test_pyenvs_newest_release_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """3.9.18 rather than 3.9.2, and neither 3.9-dev nor one whose program is gone."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    for name in ("3.9.2", "3.9.18", "3.9-dev"):
        (tmp_path / "versions" / name / "bin").mkdir(parents=True)
        (tmp_path / "versions" / name / "bin" / "python").touch()
    (tmp_path / "versions" / "3.9.20").mkdir()
    found = find(BY_ID["3.9"])
    assert found is not None
    assert found.path == str(tmp_path / "versions" / "3.9.18" / "bin" / "python")
