"""`postmortem debug`, up to the moment when gdb starts: which core is meant, and what gdb is given."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from postmortem import debug
from postmortem.cli import commands
from postmortem.cores import coredumpctl
from postmortem.gdbchild.subject import Named
from postmortem.native import interactive
from postmortem.native.interactive import Opened

from ..support.elves import core, program
from ..support.journals import FakeJournal, crashed

Started = List[Tuple[Opened, Tuple[str, ...], Dict[str, str]]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """What gdb would have been started with."""
    calls: Started = []

    def interact(opened: Opened, more: Any, variables: Dict[str, str]) -> int:
        assert opened.core.stat().st_size > 0
        root = opened.sysroot.resolve() if opened.sysroot is not None else None
        calls.append((opened._replace(core=opened.core.resolve(), sysroot=root), tuple(more), variables))
        return 7

    monkeypatch.setattr(debug, "interact", interact)
    return calls


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A core that names its program."""
    (tmp_path / "prog").write_bytes(program(b"\1" * 20))
    path = tmp_path / "core"
    path.write_bytes(
        core([(0x400000, 0x401000, 0, str(tmp_path / "prog"))], {3: 0x400040}, {0x400000: program(b"\1" * 20)})
    )
    return path


@pytest.fixture
def bundle(tmp_path: Path, file: Path) -> Path:
    """Two processes, a core of each."""
    folder = tmp_path / "bundle"
    (folder / "raw" / "cores").mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"processes": [20, 10]}))
    for pid in (10, 20):
        (folder / "raw" / "cores" / f"{pid}.core").write_bytes(file.read_bytes())
    return folder


def test_cores_that_systemd_keeps(
    started: Started, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """coredumpctl:MATCH is a target here too; the files of its container, where these are at hand, serve as --sysroot."""
    monkeypatch.setattr(coredumpctl, "FOLDER", str(file.parent))
    journal = FakeJournal(tmp_path)
    journal.lists(crashed(7, COREDUMP_FILENAME=str(file), COREDUMP_ROOT=str(tmp_path)))
    monkeypatch.setenv("PATH", journal.path)
    assert commands.main(["debug", "coredumpctl:last", "-batch"]) == 7
    ((opened, _more, _variables),) = started
    assert (opened.core, opened.sysroot) == (file, tmp_path)


def test_gdb_gets_the_core_its_program_and_the_users_arguments(started: Started, file: Path, tmp_path: Path) -> None:
    """Options of ours may stand anywhere, what else follows the target goes to gdb in its order; gdb's status is ours."""
    status = commands.main(["debug", str(file), "-ex", "pm-bt all", "-batch", "--sysroot", "/", "-x", "script"])
    assert status == 7
    ((opened, more, variables),) = started
    assert opened._replace(descriptor=None) == Opened(file, tmp_path / "prog", Path("/"), "x86-64")
    assert opened.descriptor is not None  # the very file that was looked at
    assert more == ("-ex", "pm-bt all", "-batch", "-x", "script")
    assert list(variables) == ["POSTMORTEM_ENGINE"]


@pytest.mark.parametrize(("words", "early"), [([], True), (["-ex", "pm-why", "--batch"], False)])
def test_gdb_is_told_how_the_child_is_started(started: Started, file: Path, words: List[str], early: bool) -> None:
    """By our own interpreter, isolated, in an environment that is given whole; for a person at once. The child knows the core
    by the name that gdb has for it, and by that of its user."""
    commands.main(["debug", str(file), "--sysroot", "/", *words])
    opened, _more, variables = started[0]
    handed = json.loads(variables["POSTMORTEM_ENGINE"])
    assert handed["words"][:2] == [sys.executable, "-I"]
    assert "postmortem.gdbchild.child" in handed["words"][-2]
    known = Named(**json.loads(handed["words"][-1]))
    assert (known.core, known.path, known.name) == (opened.file.for_gdb, str(file), str(file))
    assert (known.exe, known.sysroot, known.bundle) == (None, "/", None)
    assert not [name for name in handed["environment"] if name.startswith("PYTHON")]
    assert handed.get("early", False) == early


def test_of_a_bundle_the_child_knows_the_process(started: Started, bundle: Path) -> None:
    """Its answers are then those of the bundle's report."""
    commands.main(["debug", str(bundle), "--pid", "10", "--batch"])
    known = Named(**json.loads(json.loads(started[0][2]["POSTMORTEM_ENGINE"])["words"][-1]))
    assert (known.bundle, known.pid) == (str(bundle), 10)


def test_the_first_process_of_a_bundle_or_the_one_named(started: Started, bundle: Path, capsys: Any) -> None:
    """The manifest's first; with several, a remark names the others; --pid chooses."""
    commands.main(["debug", str(bundle), "--batch"])
    assert "--pid chooses among 20, 10" in capsys.readouterr().err
    commands.main(["debug", str(bundle), "--pid", "10", "--batch"])
    assert [call[0].core.name for call in started] == ["20.core", "10.core"]


@pytest.mark.parametrize(
    ("words", "sentence", "status"),
    [
        ([], "needs a core or bundle as its first argument", 2),
        (["-ex", "pm-bt"], "needs a core or bundle as its first argument", 2),
        (["/no/such/core"], "there is no file /no/such/core", 1),
        (["{file}", "--pid", "3"], "--pid chooses a core of a bundle", 2),
        (["{bundle}", "--pid", "3"], "it has cores of 20, 10", 2),
    ],
)
def test_wrong_targets_are_sentences(
    started: Started, file: Path, bundle: Path, words: List[str], sentence: str, status: int, capsys: Any
) -> None:
    """One line, the status that errors.py gives it, and no gdb."""
    assert commands.main(["debug", *(word.format(file=file, bundle=bundle) for word in words)]) == status
    assert sentence in capsys.readouterr().err
    assert started == []


def test_gdb_is_set_up_for_untrusted_files(file: Path) -> None:
    """No start-up files, no auto-loaded scripts, no debuginfod, before anything is opened; our commands before the
    user's."""
    words = interactive.command(Path("/bin/gdb"), Opened(file, None, None), ["-ex", "pm-bt"])
    assert words[1] == "-nx"
    settings = [word for flag, word in zip(words, words[1:]) if flag == "-iex"]
    assert {"set auto-load off", "set debuginfod enabled off"} <= set(settings)
    assert words.index("-x") < words.index("-ex")
    assert Path(words[words.index("-x") + 1]) == interactive.script()


def test_help_and_script_are_printed(capsys: Any) -> None:
    """-h and --help explain; --print-script names a file that is there, with no target at all."""
    for flag in ("-h", "--help"):
        assert commands.main(["debug", flag]) == 0
        assert "--print-script" in capsys.readouterr().out
    assert commands.main(["debug", "--print-script"]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()
