"""Files of a process, read by a child with the rights of its user."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest

from postmortem.foreign import kinds
from postmortem.foreign import reader as module
from postmortem.foreign.children import Lost
from postmortem.foreign.files import Unfit
from postmortem.foreign.reader import Reader
from postmortem.foreign.rights import Rights
from postmortem.foreign.root import Root

from .users import NOBODY, SOMEBODY, as_root, as_user, descriptors, open_folder

__all__ = ["open_folder"]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    before = descriptors()
    with Root.at(str(tmp_path)) as held:
        yield held
    assert descriptors() == before


def test_content_size_descriptor_and_copy(tmp_path: Path, root: Root) -> None:
    """Small and large files, by value, by descriptor and piece by piece."""
    for size in (0, 10, (1 << 20) + 1, 3 << 20):
        data = os.urandom(size)
        (tmp_path / "app.py").write_bytes(data)
        with Reader(root) as files:
            assert files.size("app.py") == size
            assert files.read("/app.py", 4 << 20, (".py",)) == data
            kept: List[bytes] = []
            files.copy("app.py", 4 << 20, kept.append)
            assert b"".join(kept) == data
            descriptor = files.open("app.py")
            assert os.pread(descriptor, 4 << 20, 0) == data
            os.close(descriptor)


def test_what_is_no_source_is_not_read(tmp_path: Path, root: Root) -> None:
    """Too large, a FIFO, a device, a link whose end has another kind of name, a link that leads out; the reader stays."""
    (tmp_path / "large.py").write_bytes(b"x" * 100)
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "secret").write_text("s")
    (tmp_path / "link.py").symlink_to("secret")
    (tmp_path / "real.py").write_text("r")
    (tmp_path / "other.py").symlink_to("/real.py")
    (tmp_path / "out.py").symlink_to("../" * 30 + "etc/passwd")
    with Reader(root) as files:
        for name, code in (
            *(("large.py", errno.EFBIG), ("fifo.py", errno.EINVAL), ("link.py", errno.EBADF)),
            *(("out.py", errno.ENOENT), (".", errno.EISDIR), ("none.py", errno.ENOENT)),
        ):
            with pytest.raises(OSError) as caught:
                files.read(name, 99, (".py",))
            assert caught.value.errno in (code, errno.EINVAL), name
        assert files.read("other.py", 99, (".py",)) == b"r"


def test_names_that_no_system_call_takes_cost_no_reader(tmp_path: Path, root: Root) -> None:
    """A program may call its files anything: half a surrogate pair, a NUL, megabytes."""
    (tmp_path / "x").write_text("x")
    with Reader(root) as files:
        for name in ("\ud800", "a\0b", "a" * 5_000_000, "", "\udcff") * 2:
            with pytest.raises(OSError) as caught:
                files.read(name, 9)
            assert not isinstance(caught.value, Lost)
        assert files.read("x", 9) == b"x"


@as_root
def test_it_reads_as_the_user(open_folder: Path) -> None:
    """A link of the user's to root's file gives nothing; that user's own files are read. Who is not root reads as
    itself."""
    (open_folder / "app.py").symlink_to("secret.py")
    (open_folder / "secret.py").write_text("s")
    (open_folder / "secret.py").chmod(0o600)
    (open_folder / "own.py").write_text("o")
    os.chown(open_folder / "own.py", SOMEBODY, SOMEBODY)
    (open_folder / "own.py").chmod(0o600)

    def look() -> Any:
        found = []
        with Root.at(str(open_folder)) as root, Reader(root, Rights(SOMEBODY, SOMEBODY)) as files:
            for name in ("app.py", "own.py"):
                try:
                    found.append(files.read(name, 9).decode())
                except OSError as exc:
                    found.append(type(exc).__name__)
        return found

    assert look() == ["PermissionError", "o"]
    assert as_user(NOBODY, look) == ["PermissionError", "PermissionError"]


def test_a_reader_that_is_stuck_is_replaced_so_many_times(
    tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that never answers costs a deadline each time, and then nothing more is asked."""
    (tmp_path / "good").write_text("g")
    (tmp_path / "stuck").write_text("s")
    really = Root.open

    def stuck(self: Root, name: str) -> int:
        while name == "stuck":
            time.sleep(1)
        return really(self, name)

    monkeypatch.setattr(Root, "open", stuck)
    monkeypatch.setattr(module, "_ANSWER_S", 0.3)
    with Reader(root) as files:
        for _ in range(2):
            with pytest.raises(Lost, match="in time"):
                files.read("stuck", 9)
        monkeypatch.setattr(module, "_ANSWER_S", 30.0)
        assert files.read("good", 9) == b"g"
        monkeypatch.setattr(module, "_ANSWER_S", 0.3)
        for _ in range(2):
            with pytest.raises(Lost):
                files.read("stuck", 9)
        with pytest.raises(Lost):
            files.read("good", 9)


def test_a_sink_that_fails_leaves_a_reader_that_works(tmp_path: Path, root: Root) -> None:
    """The disk is full for one file; the next one is read."""
    (tmp_path / "x").write_bytes(b"x" * (3 << 20))

    def full(_piece: bytes) -> None:
        raise OSError(errno.ENOSPC, "full")

    with Reader(root) as files:
        with pytest.raises(OSError, match="full"):
            files.copy("x", 4 << 20, full)
        assert files.size("x") == 3 << 20


def test_no_second_reader_where_none_can_be_made(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without another process, what is told is still why the first one was lost."""
    (tmp_path / "x").write_text("x")
    with Reader(root) as files:
        assert files._child is not None
        files._child.abandon()

        def refuse() -> Tuple[int, int]:
            raise BlockingIOError(errno.EAGAIN, "no more processes")

        monkeypatch.setattr(os, "fork", refuse)
        for _ in range(2):
            with pytest.raises(Lost):
                files.read("x", 9)


def test_what_may_block_is_handed_over_as_a_copy(tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a file system that waits for others comes as memory of our own; too large a one does not come."""
    (tmp_path / "lib.so").write_bytes(b"ELF" * 1000)
    kind = kinds.kind_of(root.descriptor)
    monkeypatch.setattr(kinds, "MAY_BLOCK", frozenset((kind,)))
    with Reader(root) as files:
        descriptor = files.open("lib.so")
        os.truncate(tmp_path / "lib.so", 0)
        assert os.pread(descriptor, 9999, 0) == b"ELF" * 1000
        assert os.readlink(f"/proc/self/fd/{descriptor}").startswith("/memfd:")
        os.close(descriptor)
    monkeypatch.setattr(module, "_MOST_COPIED", 10)
    (tmp_path / "lib.so").write_bytes(b"ELF" * 1000)
    with Reader(root) as files, pytest.raises(OSError, match="too large"):
        files.open("lib.so")


def test_what_is_handed_over_is_looked_at(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that was taken over could pass a FIFO, or nothing: neither is a file."""
    for given in (None, "/dev/null"):

        def lie(_self: Reader, _request: Any, given: Any = given) -> Any:
            return True, (), given and os.open(given, os.O_RDONLY)

        monkeypatch.setattr(Reader, "_serve", lie)
        with Reader(root) as files, pytest.raises(Lost, match=r"passed no file|not a file"):
            files.open("x")


def test_kinds_of_file_systems() -> None:
    """/proc is told by its number; ours are none that may block."""
    descriptor = os.open("/proc/self/exe", os.O_PATH | os.O_NOFOLLOW)
    assert kinds.kind_of(descriptor) == kinds.PROC
    assert not kinds.may_block(descriptor)
    os.close(descriptor)
    with pytest.raises(OSError):
        kinds.kind_of(-1)


def test_unfit_says_why() -> None:
    """Its sentence is what a gap will say."""
    assert Unfit("is too large", "x").strerror == "is too large"
