"""The bundle: written whole or not at all, read back in every state, and never trusted when it comes as an archive."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path

import pytest

from postmortem import archive as archives
from postmortem.bundle import Bundle
from postmortem.errors import CaptureFailed, NotABundle, PermissionRefused


@pytest.fixture
def made(tmp_path: Path) -> Bundle:
    return Bundle.create(tmp_path / "b")


def zipped(path: Path, **entries: bytes) -> Path:
    with zipfile.ZipFile(str(path), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


# ---------------------------------------------------------------------- writing


def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    """A file, a directory with something in it, a link that leads nowhere: refused. An empty directory is free."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir(mode=0o755)
    for name in ("file", "full", "link"):
        with pytest.raises(CaptureFailed, match="never overwritten") as caught:
            Bundle.create(tmp_path / name)
        assert "-o" in caught.value.next
    bundle = Bundle.create(tmp_path / "empty")
    assert stat.S_IMODE(bundle.path.stat().st_mode) == 0o700


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """One sentence, and what to do."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(CaptureFailed, match="cannot be") as caught:
        Bundle.create(tmp_path / "file" / "b")
    assert "-o" in caught.value.next


def test_files_are_private_and_folders_too(made: Bundle) -> None:
    """Whatever the umask."""
    before = os.umask(0)
    try:
        made.write("raw/proc/1/x.json", b"1")
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(p.stat().st_mode) for p in made.path.rglob("*") if p.is_dir()}
    assert modes == {0o700}
    assert stat.S_IMODE((made.path / "raw/proc/1/x.json").stat().st_mode) == 0o600


def test_a_file_is_whole_or_as_it_was(made: Bundle) -> None:
    """A failure in the middle leaves the old content and nothing beside it."""
    made.write("x", b"old")
    with pytest.raises(RuntimeError), made.writing("x") as stream:
        stream.write(b"half of the n")
        raise RuntimeError
    assert (made.path / "x").read_bytes() == b"old"
    assert sorted(p.name for p in made.path.iterdir()) == ["manifest.json", "x"]


def test_a_planted_link_is_not_followed(made: Bundle, tmp_path: Path) -> None:
    """Somebody who can write into the folder must not make us write elsewhere."""
    (made.path / ".x.part").symlink_to(tmp_path / "victim")
    (made.path / "x").symlink_to(tmp_path / "victim")
    (made.path / "raw").symlink_to(tmp_path)
    made.write("x", b"data")
    assert (made.path / "x").read_bytes() == b"data"
    with pytest.raises(NotADirectoryError):
        made.write("raw/victim", b"data")
    assert not (tmp_path / "victim").exists()


def test_steps_are_in_the_manifest_as_they_end(made: Bundle) -> None:
    """Success, a foreseen failure with its remedy, a defect: each one is written down, and none stops the others."""
    with made.step("one", "a"):
        pass
    with made.step("two", "b"):
        raise PermissionRefused("may not", "sudo")
    with made.step("three", "c"):  # type: ignore[unreachable] # a step keeps its exception
        raise ZeroDivisionError("oops")
    with made.step("silent", "d", only_failure=True):
        pass
    steps = json.loads((made.path / "manifest.json").read_bytes())["steps"]
    assert [(s["step"], s["subject"], s["ok"], s["remedy"]) for s in steps] == [
        ("one", "a", True, None),
        ("two", "b", False, "sudo"),
        ("three", "c", False, None),
    ]
    assert "ZeroDivisionError: oops" in steps[2]["error"]
    assert [step.get("code") for step in steps] == [None, "permission-refused", "defect"]


def test_an_interrupt_is_no_failed_step(made: Bundle) -> None:
    """It goes on to whoever can act on it."""
    with pytest.raises(KeyboardInterrupt), made.step("one", "a"):
        raise KeyboardInterrupt


# ---------------------------------------------------------------------- reading


def test_a_bundle_reads_back(made: Bundle) -> None:
    """Processes in the manifest's order, then others that left something; cores by pid; failed steps."""
    made.manifest["processes"] = [20, 10]
    with made.step("core", "process 10") as step:
        step.fail("overtaken", "refused", "sudo", pid=3)
    made.write("raw/proc/10/process.json", b"{}")
    made.write("raw/cores/5.core", b"core")
    with Bundle.open(made.path) as again:
        assert again.pids == [20, 10, 5]
        assert again.has_core(5)
        assert not again.has_core(10)
        assert [(s["code"], s["fields"], s["error"]) for s in again.failed_steps] == [
            ("overtaken", {"pid": 3}, "refused")
        ]
    assert made.path.exists()


@pytest.mark.parametrize(
    "manifest", [None, b"", b'{"schema": "postm', b"[]", b'{"processes": 3, "steps": "x"}', b"\xff"]
)
def test_one_cut_short_reads_too(made: Bundle, manifest: bytes) -> None:
    """Whatever became of the manifest, what lies beside it is found."""
    made.write("raw/proc/7/process.json", b"{")
    (made.path / "manifest.json").unlink()
    if manifest is not None:
        (made.path / "manifest.json").write_bytes(manifest)
    with Bundle.open(made.path) as again:
        assert again.pids == [7]
        assert again.read_json("raw/proc/7/process.json") is None
        assert again.failed_steps == []


def test_what_is_no_bundle(tmp_path: Path) -> None:
    """Nothing there, an empty folder, a file that is no archive."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello")
    for name in ("missing", "empty", "text"):
        with pytest.raises(NotABundle):
            Bundle.open(tmp_path / name)


# ---------------------------------------------------------------------- archives


@pytest.mark.parametrize("top", ["", "some-name/"])
def test_an_archive_reads_like_its_folder_and_leaves_nothing(tmp_path: Path, top: str) -> None:
    """With and without a folder at its top; holes stay holes; closing removes what was unpacked."""
    core = b"head" + bytes(8 << 20) + b"tail"
    entries = {f"{top}manifest.json": b'{"processes": [3]}', f"{top}raw/cores/3.core": core}
    with Bundle.open(zipped(tmp_path / "b.zip", **entries)) as opened:
        assert opened.pids == [3]
        assert opened.has_core(3)
        unpacked = opened.place / "raw/cores/3.core"
        assert unpacked.read_bytes() == core
        assert unpacked.stat().st_blocks * 512 < 1 << 20
        assert stat.S_IMODE(unpacked.stat().st_mode) == 0o600
        where = opened.place
    assert not where.exists()


@pytest.mark.parametrize(
    "name",
    ["../evil", "/tmp/evil", "raw/../../evil", "a\\..\\evil", "..", "./", "a/" * 1000 + "evil"],
    ids=lambda name: name[:16],
)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    """Nothing is written outside, and nothing of it is kept."""
    archive = zipped(tmp_path / "b.zip", **{"manifest.json": b"{}", name: b"evil"})
    with pytest.raises(NotABundle, match="no bundle has"):
        Bundle.open(archive)
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path.parent / "evil").exists()


def test_links_in_archives_are_refused(tmp_path: Path) -> None:
    """A link would make a later entry land anywhere."""
    link = zipfile.ZipInfo("raw")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(str(tmp_path / "b.zip"), "w") as archive:
        archive.writestr(link, "/etc")
        archive.writestr("raw/passwd", "x")
    with pytest.raises(NotABundle, match="no bundle has"):
        Bundle.open(tmp_path / "b.zip")


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what really comes out, not by what the headers promise; and by the number of files."""
    content = {"manifest.json": b"{}", "evidence.json": b"{}", "x": b"a" * (1 << 20), "zeros": bytes(4 << 20)}
    archive = zipped(tmp_path / "b.zip", **content)
    for limit, value in (("MAX_STORED", 1 << 19), ("MAX_APPARENT", 1 << 21), ("MAX_ENTRIES", 3)):
        with monkeypatch.context() as patch, pytest.raises(NotABundle, match="than a bundle"):
            patch.setattr(archives, limit, value)
            Bundle.open(archive)
    Bundle.open(archive).close()


def test_a_damaged_archive(tmp_path: Path) -> None:
    """One sentence, whatever zipfile makes of it."""
    archive = zipped(tmp_path / "b.zip", **{"manifest.json": b"{}", "x": os.urandom(5000)})
    data = bytearray(archive.read_bytes())
    data[200:240] = bytes(40)
    archive.write_bytes(bytes(data))
    with pytest.raises(NotABundle, match="cannot be unpacked"):
        Bundle.open(archive)


def test_an_entry_named_twice(tmp_path: Path) -> None:
    """Two contents under one name are an attack or damage; neither is guessed at."""
    with zipfile.ZipFile(str(tmp_path / "b.zip"), "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("manifest.json", b"{}")
        archive.writestr("manifest.json", b"[]")
    with pytest.raises(NotABundle):
        Bundle.open(tmp_path / "b.zip")


def test_a_full_disk_costs_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be noted now is noted as soon as there is room again; the steps go on, and the old manifest stays."""
    bundle = Bundle.create(tmp_path / "b")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Bundle, "write", full)
        with bundle.step("one", "process 1"):
            pass
        assert getattr(bundle.unsaved, "errno", None) == 28
        assert Bundle.open(tmp_path / "b").manifest["steps"] == []
    with bundle.step("two", "process 1"):
        pass
    assert not bundle.unsaved
    assert [step["step"] for step in Bundle.open(tmp_path / "b").manifest["steps"]] == ["one", "two"]


def test_a_bundle_that_cannot_be_begun_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No empty folder where the disk was full: another place is tried, and this one stays free."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Bundle, "write", full)
    with pytest.raises(CaptureFailed, match="No space left"):
        Bundle.create(tmp_path / "b")
    assert not (tmp_path / "b").exists()
