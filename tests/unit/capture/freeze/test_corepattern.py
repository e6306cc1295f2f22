"""Where the kernel's core will lie, out of core_pattern."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict

import pytest

from postmortem.capture.freeze import corepattern
from postmortem.capture.procfs import parsers
from postmortem.errors import CaptureFailed
from postmortem.foreign.held import Folder

KNOWN = {"p": "7", "P": "4007", "u": "1000", "g": "100"}


@pytest.mark.parametrize(
    ("pattern", "with_pid", "name"),
    [
        ("core", False, "core"),
        ("core", True, "core.7"),
        ("core.%p", False, "core.7"),
        ("core.%P", True, "core.4007.7"),
        ("%e.%p.%t", False, "my prog!x.7.1700000000"),
        ("%%p", False, "%p"),
        ("a%", False, "a"),
        ("a%%%", False, "a%"),
        ("%zcore", False, "core"),  # unknown: nothing
        ("core.%u.%g.%s", False, "core.1000.100.6"),
        ("c.o[r]e", False, "c.o[r]e"),
        ("%h-%E-%d%i%I", False, "host-!usr!bin!python3-078"),
    ],
)
def test_names_that_a_pattern_leads_to(pattern: str, with_pid: bool, name: str) -> None:
    """Each conversion of core(5) is matched; what is not a conversion is taken as it is."""
    compiled = corepattern.compiled(pattern, KNOWN, with_pid)
    assert compiled.fullmatch(name)
    assert not compiled.fullmatch(name + "0x")
    assert not compiled.fullmatch("a/folder/" + name)


def test_another_process_is_not_matched() -> None:
    """The number is the process's own."""
    assert not corepattern.compiled("core.%p", KNOWN, False).fullmatch("core.77")
    assert not corepattern.compiled("cXore", KNOWN, True).fullmatch("cXore.8")


class Kernel:
    """core_pattern and core_uses_pid as a test wants them; the rest of /proc is real."""

    def __init__(self, pattern: str, uses_pid: str = "0") -> None:
        self._files: Dict[str, bytes] = {
            "/proc/sys/kernel/core_pattern": pattern.encode() + b"\n",
            "/proc/sys/kernel/core_uses_pid": uses_pid.encode() + b"\n",
        }
        self._real = parsers.read

    def read(self, path: str, limit: int = 1 << 20) -> bytes:
        return self._files[path] if path in self._files else self._real(path, limit)


def place(monkeypatch: pytest.MonkeyPatch, pattern: str, uses_pid: str = "0") -> corepattern.Place:
    monkeypatch.setattr(parsers, "read", Kernel(pattern, uses_pid).read)
    return corepattern.place(os.getpid())


def test_a_relative_pattern_is_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only names that were not there count, and only such as fit."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"core.{os.getpid()}9").write_bytes(b"")
    found = place(monkeypatch, "core.%p")
    try:
        assert found.names_process
        assert found.appeared() == []
        (tmp_path / "core.1").write_bytes(b"")
        (tmp_path / f"core.{os.getpid()}").write_bytes(b"")
        assert found.appeared() == [f"core.{os.getpid()}"]
    finally:
        found.folder.close()


def test_an_absolute_pattern_with_the_number_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders with conversions whose value is known are found."""
    (tmp_path / str(os.getpid())).mkdir()
    found = place(monkeypatch, f"{tmp_path}/%p/core", "1")
    try:
        (tmp_path / str(os.getpid()) / f"core.{os.getpid()}").write_bytes(b"")
        assert found.appeared() == []  # the number is in the pattern already: nothing is added
        (tmp_path / str(os.getpid()) / "core").write_bytes(b"")
        assert found.appeared() == ["core"]
    finally:
        found.folder.close()


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("|/usr/lib/systemd/systemd-coredump %P %u", "hands cores to /usr/lib/systemd/systemd-coredump"),
        ("@/run/cores.socket", "hands cores to /run/cores.socket"),
        ("", "core_pattern is empty"),
        ("/tmp/%t/core", "cannot be predicted (%t"),
    ],
)
def test_no_file_to_be_found(monkeypatch: pytest.MonkeyPatch, pattern: str, sentence: str) -> None:
    """Each reason has its sentence, and a remedy."""
    with pytest.raises(CaptureFailed) as caught:
        place(monkeypatch, pattern)
    assert sentence in str(caught.value)
    assert "core_pattern" in caught.value.next


def test_a_file_that_would_be_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel would write over a file of that name, whosever it is: then there is no core. With the time in it: yes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "core").write_text("my notes on apples")
    with pytest.raises(CaptureFailed, match="would overwrite"):
        place(monkeypatch, "core")
    (tmp_path / "core.1700000000").write_text("an older one")
    found = place(monkeypatch, "core.%t")
    found.folder.close()
    assert found.before == ["core.1700000000"]


def test_only_plain_files_are_cores(tmp_path: Path) -> None:
    """A link, a file with a second name, or one of another user is nothing that the kernel has just written."""
    (tmp_path / "core").write_bytes(b"")
    (tmp_path / "soft").symlink_to("core")
    (tmp_path / "alone").write_bytes(b"")
    os.mkfifo(tmp_path / "fifo")
    os.link(tmp_path / "core", tmp_path / "hard")
    with Folder.at(str(tmp_path)) as folder:
        os.close(corepattern.open_plain(folder, "alone", (os.geteuid(),)))
        for name in ("core", "soft", "hard", "fifo", "none"):
            with pytest.raises(OSError):
                corepattern.open_plain(folder, name, (os.geteuid(),))
        with pytest.raises(OSError, match="not a file that the kernel"):
            corepattern.open_plain(folder, "alone", (os.geteuid() + 1,))
