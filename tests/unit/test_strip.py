"""`report --strip`: what it writes, where, and what it refuses."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from postmortem import evidence
from postmortem.bundle import Bundle
from postmortem.cli import commands
from postmortem.errors import NotABundle, PostmortemError
from postmortem.pipeline import analyze_target
from postmortem.strip import strip

from ..support.samples import thrash

SECRET = "hunter2x"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A bundle of a version that masked nothing, with a core."""
    found, _ = thrash()
    first = evidence.replace(found.processes[0], argv=("python3", "app.py", "--token", SECRET))
    found = evidence.replace(found, processes=(first, *found.processes[1:]))
    with Bundle.create(tmp_path / "old") as bundle:
        bundle.manifest["command"] = ["python3", "app.py", "--token", SECRET]
        bundle.manifest["steps"] = [{"step": "x", "ok": False, "error": f"cannot open https://ann:{SECRET}@host"}]
        bundle.save_manifest()
        bundle.write("evidence.json", evidence.encode(found))
        bundle.write("report.txt", SECRET.encode())
        bundle.write("raw/cores/1.core", SECRET.encode())
        bundle.write("raw/proc/1/process.json", SECRET.encode())
    return tmp_path / "old"


def test_what_an_older_version_wrote_is_masked(old: Path) -> None:
    """Reports are made anew; the rest is as `analyze` has it."""
    bare = strip(old)
    assert bare == old.with_name("old-stripped")
    assert sorted(path.name for path in bare.iterdir())[:2] == ["evidence.json", "manifest.json"]
    assert not [path for path in bare.rglob("*") if path.is_file() and SECRET in path.read_text("utf-8")]
    manifest = json.loads((bare / "manifest.json").read_text())
    assert manifest["command"] == ["python3", "app.py", "--token", "<redacted>"]
    assert manifest["steps"][0]["error"] == "cannot open https://<redacted>@host"
    (_, before), (_, now) = analyze_target(str(old)), analyze_target(str(bare))
    assert (now.verdict, now.signature) == (before.verdict, before.signature)
    assert strip(bare, old.with_name("again")).is_dir()


def test_an_archive_gives_an_archive(old: Path) -> None:
    """Beside it, in one folder, private; it can be stripped and read itself."""
    packed = strip(old, old.with_name("packed.zip"))
    again = strip(packed)
    assert again == old.with_name("packed-stripped.zip")
    assert packed.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(packed) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"packed"}
        assert archive.testzip() is None
    assert analyze_target(str(again))[1].verdict == analyze_target(str(old))[1].verdict


@pytest.mark.parametrize("name", ["taken", "taken.zip", "folder.zip", "link"])
def test_nothing_is_overwritten(old: Path, name: str) -> None:
    """Not a folder, a file, nor what a link leads to."""
    target = old.with_name(name)
    if name == "link":
        target.symlink_to(old.with_name("nowhere"))
    elif name == "taken.zip":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / "mine").write_text("mine")
    with pytest.raises(PostmortemError, match="never overwritten") as caught:
        strip(old, target)
    assert caught.value.status == 1
    assert not target.is_file() or target.read_text() == "mine"


def test_what_cannot_be_written_or_read_is_one_sentence(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the status of `report`, not of `capture`; nothing half-made is left."""
    (old.parent / "file").write_text("")
    for output in ("file/below", "file/below.zip"):
        assert commands.main(["report", str(old), "--strip", "-o", str(old.parent / output)]) == 1
        assert "-o FILE.zip" in capsys.readouterr().err
    with pytest.raises(NotABundle):
        strip(old.parent / "gone")
    assert not (old.parent / "gone-stripped").exists()


@pytest.mark.parametrize("words", [("--strip", "-f", "json"), ("--strip", "--report", "x.json"), ("-o", "x")])
def test_options_that_do_not_go_together(old: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """A bundle or a report, one at a time."""
    assert commands.main(["report", str(old), *words]) == 2
    assert capsys.readouterr().out == ""
    assert [path.name for path in old.parent.iterdir()] == ["old"]
