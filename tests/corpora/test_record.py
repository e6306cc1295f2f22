"""The recorder's parts that need no capture: scrubbing, interpreters, environments, peers."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from .cases import all_cases
from .record import main
from .runs import NotRecorded, environment, interpreter, peer
from .scrub import scrub


def test_folders_are_replaced_everywhere() -> None:
    """In values and keys, inside strings, the longest folder first; numbers and nulls stay. Control groups lose their name."""
    before = {
        "file": "/w/1/app/program.py",
        "n": 5,
        "none": None,
        "list": ["x /w/1/bundle y", "/tmp/python-build.2026.1/Python-3.11.7/Modules/a.c"],
        "/w/1/app/a.py": {"3": "pass"},
        "cgroup": {"path": "/ci/job-77", "frozen": False},
    }
    assert json.loads(scrub(json.dumps(before).encode(), {"/w/1": "/job", "/w/1/app": "/app"})) == {
        "file": "/app/program.py",
        "n": 5,
        "none": None,
        "list": ["x /job/bundle y", "/build/Python-3.11.7/Modules/a.c"],
        "/app/a.py": {"3": "pass"},
        "cgroup": {"path": "/", "frozen": False},
    }


def test_pyenvs_interpreter_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest patch release of the version, by number; other versions do not count."""
    for name in ("3.11.7", "3.11.12", "3.1.9"):
        (tmp_path / "versions" / name / "bin").mkdir(parents=True)
        (tmp_path / "versions" / name / "bin" / "python").touch()
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert interpreter("3.11").parent.parent.name == "3.11.12"


def test_without_pyenv_path_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pythonX.Y on PATH; without it one sentence says what is missing."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotRecorded, match=r"no Python 3\.11"):
        interpreter("3.11")
    on_path = tmp_path / "python3.11"
    on_path.write_text("#!/bin/sh\n", "utf-8")
    on_path.chmod(0o755)
    assert interpreter("3.11") == on_path


def test_no_requirements_need_no_environment() -> None:
    """The interpreter itself runs the program."""
    assert environment(Path("/x/python"), ()) == Path("/x/python")


def test_a_broken_environment_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pip says is in the error, and no half-made folder counts as complete the next time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fake = tmp_path / "python"
    fake.write_text(
        '#!/bin/sh\ncase "$*" in\n'
        '*"-m venv"*) for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python"; exit 0;;\n'
        '*) echo "no such distribution" >&2; exit 1;;\nesac\n',
        "utf-8",
    )
    fake.chmod(0o755)
    for _ in range(2):
        with pytest.raises(NotRecorded, match="no such distribution"):
            environment(fake, ("x==1",))
    fake.write_text(fake.read_text("utf-8").replace("exit 1", "exit 0"), "utf-8")
    made = environment(fake, ("x==1",))
    assert made.exists()
    assert made == environment(fake, ("x==1",))


def test_an_interpreter_without_ensurepip_gets_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `python -m venv` fails it is made without pip, and our own pip installs into it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = tmp_path / "asked"
    fake = tmp_path / "python"
    fake.write_text(
        f'#!/bin/sh\necho "$@" >> {asked}\ncase "$*" in\n'
        '*--without-pip*) for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python"; exit 0;;\n'
        '*"-m venv"*) echo "ensurepip is not available"; exit 1;;\nesac\n',
        "utf-8",
    )
    fake.chmod(0o755)
    made = environment(fake, ("x==1",))
    assert made.exists()
    assert asked.read_text("utf-8").splitlines()[-1].endswith("x==1")


def test_a_peer_listens_and_goes_away() -> None:
    """A case's other side takes connections while it is wanted, and no longer."""
    case = next(case for case in all_cases() if case.peer)
    with peer(case) as arguments:
        host, _, port = arguments[0].rpartition(":")
        socket.create_connection((host, int(port)), timeout=10).close()
    with pytest.raises(OSError):
        socket.create_connection((host, int(port)), timeout=10)


def test_an_unknown_case_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """A glob that names nothing is an error, not a success without work."""
    with pytest.raises(SystemExit) as stopped:
        main(["--cases", "no/such"])
    assert stopped.value.code == 2
    assert "no/such" in capsys.readouterr().err
