"""Directories held by descriptor: nothing is written or read outside of them, whoever swaps what meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from postmortem.foreign import held as module
from postmortem.foreign.held import Folder
from postmortem.foreign.openat2 import NotThere
from postmortem.foreign.ways import Unsafe, walk
from postmortem.foreign.writing import write_file

from .users import NOBODY, SOMEBODY, as_root, as_user, descriptors, open_folder

__all__ = ["open_folder"]


@pytest.fixture(params=["openat2", "steps"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Everything holds with openat2(2) and without it, and leaves no descriptor open."""

    def absent(folder: int, name: str, flags: int, resolve: int) -> int:
        raise NotThere

    if request.param == "steps":
        monkeypatch.setattr(module, "openat2", absent)
    before = descriptors()
    yield
    assert descriptors() == before


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_ours_alone(tmp_path: Path) -> None:
    """Mode 0700 and files of 0600 whatever the umask says; parents are made; what is there already is refused."""
    before = os.umask(0o277)
    try:
        with Folder.create(str(tmp_path / "x" / "y" / "bundle")) as folder:
            folder.write("raw/proc/7/maps", b"maps")
            folder.write("raw/proc/7/maps", b"maps, again")
            folder.link("raw/proc/7/maps", "raw/other")
    finally:
        os.umask(before)
    bundle = tmp_path / "x" / "y" / "bundle"
    assert (mode(bundle), mode(bundle / "raw" / "other")) == (0o700, 0o600)
    assert (bundle / "raw" / "other").read_bytes() == b"maps, again"
    assert sorted(os.listdir(bundle / "raw" / "proc" / "7")) == ["maps"]
    for taken in (bundle, tmp_path / "x"):
        with pytest.raises(FileExistsError):
            Folder.create(str(taken))


HOSTILE = [
    *("/etc/passwd", "../x", "a/../../x", "a/..", "..", "", ".", "/", "a\0b", "./../x"),
    *("/tmp/../../../usr/lib/python3/x.py", "\ud800/x"),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    """Absolute, upwards, empty, with a NUL: neither written, nor read, nor linked, nor removed."""
    (tmp_path / "x").write_text("outside")
    with Folder.create(str(tmp_path / "bundle")) as folder:
        folder.write("a/b", b"b")
        attempts: Dict[str, Callable[[], Any]] = {
            "write": lambda: folder.write(name, b"evil"),
            "read": lambda: folder.read(name, 99),
            "child": lambda: folder.child(name, make=True),
            "from": lambda: folder.link(name, "c"),
            "to": lambda: folder.link("a/b", name),
        }
        for attempt in attempts.values():
            with pytest.raises(ValueError):
                attempt()
        assert not folder.has(name)
        folder.remove_tree(name)
        assert folder.names() == ["a"]
    assert (tmp_path / "x").read_text() == "outside"


def test_links_inside_are_never_followed(tmp_path: Path) -> None:
    """A link in the middle or at the end of a name: refused for reading, replaced or refused for writing."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret")
    bundle = tmp_path / "bundle"
    with Folder.create(str(bundle)) as folder:
        (bundle / "raw").symlink_to(outside)
        (bundle / "file").symlink_to(outside / "file")
        (bundle / ".new.part").symlink_to(outside / "planted")
        os.mkfifo(bundle / "fifo")
        for name in ("raw/file", "file", "fifo"):
            with pytest.raises(OSError):
                folder.read(name, 99)
            assert not folder.has(name)
        with pytest.raises(OSError):
            folder.write("raw/file", b"evil")
        with pytest.raises(OSError):
            folder.child("raw")
        assert folder.names("raw") == []
        folder.write("file", b"ours")
        folder.write("new", b"ours")
        folder.remove_tree("raw")
        assert folder.names() == ["fifo", "file", "new", "raw"]
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"file": "secret"}
    assert (bundle / "file").read_bytes() == b"ours"


def test_swaps_meanwhile_lead_nowhere(tmp_path: Path) -> None:
    """A thread that puts a link in the place of a directory, again and again, while files are written and read below: what is
    outside stays as it is, and none of it is read."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret")
    bundle = tmp_path / "bundle"
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            try:
                os.rename(bundle / "raw", bundle / "aside")
                os.symlink(outside, bundle / "raw")
                os.unlink(bundle / "raw")
                os.rename(bundle / "aside", bundle / "raw")
            except OSError:  # a directory that the writer made meanwhile
                with_links = [path for path in (bundle / "raw",) if path.is_symlink()]
                for path in with_links:
                    path.unlink()

    found = set()
    with Folder.create(str(bundle)) as folder:
        folder.write("raw/file", b"inside")
        thread = threading.Thread(target=swap)
        thread.start()
        try:
            for number in range(1000):
                for attempt in (
                    lambda number=number: folder.write(f"raw/{number % 10}", b"inside"),
                    lambda: folder.write("raw/file", b"inside"),
                    lambda: found.add(folder.read("raw/file", 99)),
                    lambda: found.add(b" ".join(map(os.fsencode, folder.names("raw")))),
                    lambda: folder.link("raw/1", "raw/linked"),
                    lambda: folder.remove_tree("raw/sub"),
                ):
                    with contextlib.suppress(OSError):
                        attempt()  # type: ignore[no-untyped-call]
        finally:
            over.set()
            thread.join()
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "secret"
    assert b"secret" not in found
    assert b"inside" in found


def test_a_folder_that_was_swapped_after_it_was_made_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between mkdir and open somebody puts another directory there, one of ours with files in it: refused."""
    (tmp_path / "older").mkdir(mode=0o700)
    (tmp_path / "older" / "manifest.json").write_text("kept")
    really = os.mkdir

    def swapped(name: Any, *args: Any, **kwargs: Any) -> None:
        really(name, *args, **kwargs)
        if name == "bundle":
            os.rename(tmp_path / "bundle", tmp_path / "made")
            os.rename(tmp_path / "older", tmp_path / "bundle")

    monkeypatch.setattr(os, "mkdir", swapped)
    with pytest.raises(Unsafe, match="replaced"):
        Folder.create(str(tmp_path / "bundle"))
    assert (tmp_path / "bundle" / "manifest.json").read_text() == "kept"


def test_what_is_held_stays_ours_when_it_is_moved(tmp_path: Path) -> None:
    """The bundle's name is swapped for a link: files go to where they went before."""
    (tmp_path / "elsewhere").mkdir()
    with Folder.create(str(tmp_path / "bundle")) as folder:
        os.rename(tmp_path / "bundle", tmp_path / "moved")
        (tmp_path / "bundle").symlink_to("elsewhere")
        folder.write("raw/x", b"x")
    assert (tmp_path / "moved" / "raw" / "x").read_bytes() == b"x"
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_folder_that_is_there_is_taken_over_only_when_it_is_ours(tmp_path: Path) -> None:
    """Not when others may write to it; not a file."""
    (tmp_path / "x").mkdir()
    for bits in (0o770, 0o702, 0o777, 0o1777):
        (tmp_path / "x").chmod(bits)
        with pytest.raises(Unsafe, match="write"):
            Folder.take_over(str(tmp_path / "x"))
    (tmp_path / "x").chmod(0o755)
    Folder.take_over(str(tmp_path / "x")).close()
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        Folder.take_over(str(tmp_path / "file"))


@as_root
def test_other_users_folders_and_links(open_folder: Path) -> None:
    """Another user's directory is not taken over, its links are not followed; a new one in its directory is ours. The user
    itself may use its own."""
    theirs = open_folder / "theirs"
    theirs.mkdir()
    (open_folder / "ours").mkdir(mode=0o755)
    (theirs / "link").symlink_to(open_folder / "ours")
    (open_folder / "own-link").symlink_to("ours")
    for path in (theirs, theirs / "link"):
        os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
    with pytest.raises(Unsafe, match=str(SOMEBODY)):
        Folder.take_over(str(theirs))
    for attempt in (Folder.take_over, lambda path: Folder.create(f"{path}/new")):
        with pytest.raises(Unsafe, match="link"):
            attempt(str(theirs / "link"))
    Folder.take_over(str(open_folder / "own-link")).close()
    with Folder.create(str(theirs / "bundle")) as folder:
        assert folder.owner == 0
        folder.write("x", b"x")
        assert as_user(SOMEBODY, lambda: os.listdir(theirs / "bundle"))[0] == "PermissionError"

    def own(name: str) -> List[str]:
        with Folder.create(str(theirs / name)) as folder:
            folder.write("a", b"")
            return folder.names()

    assert as_user(SOMEBODY, lambda: own("x")) == ["a"]
    assert as_user(NOBODY, lambda: own("y"))[0] == "PermissionError"


def test_a_way_without_end_is_refused(tmp_path: Path) -> None:
    """Links that lead to each other, a file in the middle, something that is missing: the system's own errors."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "file").write_text("")
    for name, code in (("a/x", errno.ELOOP), ("file/x", errno.ENOTDIR), ("none/x", errno.ENOENT)):
        with pytest.raises(OSError) as caught:
            walk(str(tmp_path / name))
        assert caught.value.errno == code


def test_a_file_that_was_not_finished_does_not_take_the_name(tmp_path: Path) -> None:
    """The old content stays, and nothing half-written is left beside it."""
    with Folder.create(str(tmp_path / "b")) as folder:
        folder.write("x", b"old")
        with pytest.raises(RuntimeError), folder.writing("x") as stream:
            stream.write(b"half")
            raise RuntimeError
        assert (folder.read("x", 9), folder.names()) == (b"old", ["x"])


def test_names_are_bounded_and_told_again(tmp_path: Path) -> None:
    """The first ones only, of as many as there may be; a list that was left half-way does not shorten the next one."""
    with Folder.create(str(tmp_path / "b")) as folder:
        for number in range(30):
            folder.write(str(number), b"")
        assert len(folder.names(most=7)) == 7
        twin = Folder(os.dup(folder.descriptor))
        with os.scandir(twin.descriptor) as entries:
            next(entries)
            assert len(folder.names()) == 30
        twin.close()


def test_a_tree_is_removed_however_it_looks(tmp_path: Path) -> None:
    """Links are removed, not what they lead to; what lies too deep stays, without an error."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("x")
    with Folder.create(str(tmp_path / "b")) as folder:
        folder.write("t/a/b/c", b"")
        (tmp_path / "b" / "t" / "link").symlink_to(tmp_path / "outside")
        (tmp_path / "b" / "t" / "a" / "dangling").symlink_to("none")
        os.mkfifo(tmp_path / "b" / "t" / "fifo")
        folder.remove_tree("t")
        assert folder.names() == []
        at = os.dup(folder.descriptor)
        for _ in range(3000):
            os.mkdir("d", dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
        folder.remove_tree("d")
    while os.path.isdir(tmp_path / "b" / "d"):  # pytest's own cleaning goes no deeper than ours
        os.rename(tmp_path / "b" / "d", tmp_path / "b" / "e")
        if os.path.isdir(tmp_path / "b" / "e" / "d"):
            os.rename(tmp_path / "b" / "e" / "d", tmp_path / "b" / "d")
        os.rmdir(tmp_path / "b" / "e")
    assert (tmp_path / "outside" / "file").read_text() == "x"


def test_a_named_file_is_replaced_or_written_to_as_what_it_is(tmp_path: Path) -> None:
    """A file of ours is replaced as a whole, a pipe is written to; a link is refused, and so is a directory."""
    path = tmp_path / "report.txt"
    for text in (b"one", b"two"):
        write_file(str(path), text)
        assert (path.read_bytes(), mode(path), os.listdir(tmp_path)) == (text, 0o600, ["report.txt"])
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_file(str(tmp_path / "pipe"), b"three")
    assert os.read(reading, 9) == b"three"
    os.close(reading)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(Unsafe, match="link"):
        write_file(str(tmp_path / "link"), b"evil")
    with pytest.raises(IsADirectoryError):
        write_file(str(tmp_path), b"evil")
    with pytest.raises(Unsafe, match="link"):
        write_file(f"/dev/fd/../..{tmp_path}/link", b"evil")  # no stream, though it begins like one
    assert path.read_bytes() == b"two"


def test_a_pipe_that_is_swapped_for_a_file_leaves_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was looked at is what is opened, whatever has its name by then."""
    os.mkfifo(tmp_path / "out")
    (tmp_path / "precious").write_text("precious")
    reading = os.open(tmp_path / "out", os.O_RDONLY | os.O_NONBLOCK)
    looked_at = os.fstat

    def swap(descriptor: int) -> os.stat_result:
        found = looked_at(descriptor)
        if stat.S_ISFIFO(found.st_mode) and (tmp_path / "precious").exists():
            os.rename(tmp_path / "precious", tmp_path / "out")
        return found

    monkeypatch.setattr(os, "fstat", swap)
    write_file(str(tmp_path / "out"), b"report")
    assert (tmp_path / "out").read_text() == "precious"
    assert os.read(reading, 9) == b"report"
    os.close(reading)


def test_a_strangers_directory_shows_nobody_elses_files(tmp_path: Path) -> None:
    """A second name of root's file there (fs.protected_hardlinks=0), or a copy that is another user's: not opened; the
    stranger's own are. In our own directory whatever lies there was put there by us."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to make another user's directory")
    secret, theirs, ours = tmp_path / "secret", tmp_path / "theirs", tmp_path / "ours"
    secret.write_text("root's")
    for path in (theirs, ours):
        path.mkdir()
        os.link(secret, path / "evidence.json")
    (theirs / "own").write_text("theirs")
    for path in (theirs, theirs / "own"):
        os.chown(path, 65534, 65534)
    with Folder.at(str(theirs)) as folder:
        with pytest.raises(OSError, match="does not belong to the user whose directory it lies in"):
            folder.read("evidence.json", 99)
        assert folder.read("own", 99) == b"theirs"
    with Folder.at(str(ours)) as folder:
        assert folder.read("evidence.json", 99) == b"root's"
