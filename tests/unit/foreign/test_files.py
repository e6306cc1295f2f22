"""Files that others made, opened without waiting and read within a bound."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from postmortem.foreign.files import FileView, Unfit, open_regular, read_descriptor, read_file

from .users import descriptors


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    """All of it, up to the very limit; what is larger is refused, and nothing stays open."""
    path = tmp_path / "x.json"
    path.write_bytes(b"12345")
    before = descriptors()
    assert read_file(str(path), 5) == b"12345"
    with pytest.raises(Unfit, match="larger"):
        read_file(str(path), 4)
    assert descriptors() == before


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    """A FIFO that nobody writes to, a device, a socket: refused at once and never opened; a directory by its own error."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    before = descriptors()
    for name in ("fifo", "zero", "socket"):
        with pytest.raises(Unfit, match="not a regular file"):
            open_regular(str(tmp_path / name))
    with pytest.raises(IsADirectoryError):
        open_regular(str(tmp_path))
    assert descriptors() == before


def test_a_fifo_put_in_the_place_of_the_file_that_was_looked_at_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was checked is what is opened: the inode is held, and its name does not matter any more."""
    path = tmp_path / "x"
    path.write_bytes(b"first")
    looked_at = os.fstat

    def swap(descriptor: int) -> os.stat_result:
        found = looked_at(descriptor)
        if path.exists() and not path.is_fifo():
            path.unlink()
            os.mkfifo(path)
        return found

    monkeypatch.setattr(os, "fstat", swap)
    descriptor = open_regular(str(path))
    try:
        assert os.read(descriptor, 10) == b"first"
    finally:
        os.close(descriptor)


def test_a_link_is_followed_only_where_that_is_allowed(tmp_path: Path) -> None:
    """``follow=False`` refuses a symbolic link as the last component."""
    (tmp_path / "secret").write_bytes(b"s")
    (tmp_path / "link").symlink_to("secret")
    assert read_file(str(tmp_path / "link"), 9) == b"s"
    with pytest.raises(Unfit):
        read_file(str(tmp_path / "link"), 9, follow=False)


def test_what_is_opened_is_not_inherited_and_is_read_only(tmp_path: Path) -> None:
    """Programs that we start do not get it, and nothing can be written through it."""
    (tmp_path / "x").write_bytes(b"1")
    descriptor = open_regular("x", folder=(folder := os.open(tmp_path, os.O_PATH)))
    try:
        assert not os.get_inheritable(descriptor)
        with pytest.raises(OSError):
            os.write(descriptor, b"2")
    finally:
        os.close(descriptor)
        os.close(folder)


def test_a_growing_file_is_read_as_far_as_it_went(tmp_path: Path) -> None:
    """The size at the beginning counts: a writer that never stops keeps nobody."""
    path = tmp_path / "log"
    path.write_bytes(b"abc")
    descriptor = open_regular(str(path))
    try:
        size = os.fstat(descriptor).st_size
        with path.open("ab") as stream:
            stream.write(b"def")
        assert size == 3
        assert read_descriptor(descriptor, 6) == b"abcdef"  # begun anew, it is longer
    finally:
        os.close(descriptor)
    assert read_file("/proc/self/status", 1 << 20) == b""  # the files of /proc have no size, and no content here


def test_a_file_that_is_truncated_while_it_is_viewed_reads_short(tmp_path: Path) -> None:
    """Bytes that vanish are missing: no signal, no exception, and nothing in their place."""
    path = tmp_path / "core"
    path.write_bytes(bytes(range(256)) * 1024)  # four blocks
    view = FileView(open_regular(str(path)))
    try:
        assert len(view) == 256 * 1024
        assert view[10:20] == bytes(range(10, 20))
        assert view[65530:65542] == bytes([250, 251, 252, 253, 254, 255, 0, 1, 2, 3, 4, 5])
        assert view.find(bytes([254, 255, 0, 1])) == 254
        os.truncate(path, 100)
        assert view[200_000:200_010] == b""
        assert view.read(90, 20) == bytes(range(90, 100))
        assert view.find(b"\xff\xff\xff") == -1
    finally:
        view.close()
    view.close()
