"""Names below another root: with openat2(2) and without it, the same answers."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from pathlib import Path
from typing import Callable, Iterator, List, Tuple, Union

import pytest

from postmortem.foreign import openat2 as system_call
from postmortem.foreign import root as roots
from postmortem.foreign.openat2 import NotThere
from postmortem.foreign.root import Root

from .users import descriptors

#: The magic link of /proc to our own root.
OUR_ROOT = "/proc/self/root"


def _absent(folder: int, name: str, flags: int, resolve: int) -> int:
    raise NotThere


@pytest.fixture(params=["openat2", "steps"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "steps":
        monkeypatch.setattr(roots, "openat2", _absent)
    return str(request.param)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with a secret beside it, and every way of leading there."""
    (tmp_path / "secret").write_text("outside")
    top = tmp_path / "root"
    (top / "a" / "b").mkdir(parents=True)
    (top / "etc").mkdir()
    (top / "etc" / "passwd").write_text("inside")
    (top / "a" / "file").write_text("a file")
    (top / "secret").write_text("inside, too")
    links = {
        "absolute": "/etc/passwd",
        "upwards": "../../../../etc/passwd",
        "a/b/relative": "../file",
        "out": str(tmp_path / "secret"),
        "folder": "a/b/",
        "dotted": "a/.",
        "loop": "loop",
        "one": "two",
        "two": "one",
        "dangling": "nowhere",
        "to-link": "absolute",
        "slashed": "a/file/",
        "a/b/up": "..",
        "deep": "/".join(["a/b/up"] + ["b/up"] * 30 + ["file"]),
        "proc": f"{OUR_ROOT}/etc/passwd",
    }
    for name, target in links.items():
        (top / name).symlink_to(target)
    os.mkfifo(top / "fifo")
    (top / ("x" * 255)).write_text("long")
    return top


NAMES = [
    *("etc/passwd", "/etc/passwd", "//etc//passwd", "./etc/./passwd", "../etc/passwd", "../../secret", "/../secret"),
    *("a/../etc/passwd", "a/b/../../secret", "a/file/..", "a/file/../file", "a/file/", "a/file/.", "a/b", "a/b/", "."),
    *("/", "..", "", "nothing", "nothing/x", "a/nothing/..", "absolute", "upwards", "a/b/relative", "out", "folder"),
    *("folder/relative", "folder/..", "folder/../file", "dotted/b", "dotted/../secret", "loop", "loop/x", "one"),
    *("dangling", "dangling/..", "to-link", "to-link/", "slashed", "a/b/up/file", "deep", "proc", "fifo", "fifo/"),
    *("x" * 255, "x" * 256, "a/" * 2047 + "x", "./" * 2047 + "a", "./" * 2048 + "a", "a\0b", "\ud800", "\udcff"),
]

Answer = Union[Tuple[int, int], str]


def _look(root: Root, name: str) -> Answer:
    """The inode that is held, or the name of the error's number."""
    try:
        held = root.hold(name)
    except OSError as exc:
        return errno.errorcode[exc.errno or 0]
    try:
        found = os.fstat(held)
        return found.st_dev, found.st_ino
    finally:
        os.close(held)


@pytest.mark.parametrize("links", [True, False])
def test_steps_find_what_openat2_finds(tree: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    """Every name of a hostile tree means the same inode, or fails with the same error; nothing stays open."""
    before = descriptors()
    with Root.at(str(tree), links=links) as root:
        expected = {name: _look(root, name) for name in NAMES}
        monkeypatch.setattr(roots, "openat2", _absent)
        assert {name: _look(root, name) for name in NAMES} == expected
    outside = os.stat(tree.parent / "secret")
    assert (outside.st_dev, outside.st_ino) not in expected.values()
    assert descriptors() == before


def test_magic_links_are_refused(way: str) -> None:
    """Links of /proc that lead to an open file, a root or a program without going any way: in no root are they followed.
    Its ordinary links are."""
    with Root.at("/") as root:
        for name in (
            "/proc/self/exe",
            "/proc/self/cwd/x",
            f"{OUR_ROOT}/etc/passwd",
            "/proc/self/fd/0",
            "/proc/self/ns/mnt",
        ):
            assert _look(root, name) == "ELOOP", name
        status = os.stat("/proc/self/status")
        assert _look(root, "/proc/self/status") == (status.st_dev, status.st_ino)
        assert _look(root, "/proc/mounts") == _look(root, "/proc/self/mounts")


def test_only_regular_files_are_opened(tree: Path, way: str) -> None:
    """A FIFO and a directory are held by name, but never opened."""
    before = descriptors()
    with Root.at(str(tree)) as root:
        for name in ("fifo", "a"):
            with pytest.raises(OSError):
                root.open(name)
        descriptor = root.open("upwards")
        assert os.read(descriptor, 99) == b"inside"
        os.close(descriptor)
    assert descriptors() == before


@pytest.fixture
def endlessly() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Runs functions in threads, again and again, until the test is over."""
    over = threading.Event()
    threads: List[threading.Thread] = []

    def start(action: Callable[[], object]) -> None:
        def run() -> None:
            while not over.is_set():
                action()

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield start
    over.set()
    for thread in threads:
        thread.join()


def test_renames_meanwhile_lead_nowhere_else(
    tmp_path: Path, way: str, endlessly: Callable[[Callable[[], object]], None]
) -> None:
    """A directory that is moved out of the root and back while ``..`` is looked up in it: the answer is inside, or none."""
    top = tmp_path / "root"
    (top / "a" / "b" / "c").mkdir(parents=True)
    (top / "secret").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "elsewhere").mkdir()

    def move() -> None:
        os.rename(top / "a" / "b", tmp_path / "elsewhere" / "b")
        os.rename(tmp_path / "elsewhere" / "b", top / "a" / "b")

    endlessly(move)
    before = descriptors()
    contents = set()
    with Root.at(str(top)) as root:
        turns = 0
        while turns < 3000 or "inside" not in contents:
            turns += 1
            try:
                descriptor = root.open("a/b/c/../../../../secret")
            except OSError as exc:
                contents.add(errno.errorcode[exc.errno or 0])
                continue
            contents.add(os.read(descriptor, 9).decode())
            os.close(descriptor)
    assert contents <= {"inside", "ENOENT"}
    assert descriptors() == before


def test_endless_renames_do_not_keep_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that says EAGAIN again and again, because somebody renames all the time: the steps answer instead."""
    (tmp_path / "x").write_text("x")
    asked = []

    class Busy:
        def syscall(self, *_: object) -> int:
            asked.append(1)
            return -1

    monkeypatch.setattr(system_call, "_LIBC", Busy())
    monkeypatch.setattr(ctypes, "get_errno", lambda: errno.EAGAIN)
    with Root.at(str(tmp_path)) as root:
        os.close(root.open("x"))
    assert 0 < len(asked) < 1000


def test_a_way_with_thousands_of_links_comes_to_an_end(tmp_path: Path, way: str) -> None:
    """Links whose targets name each other many times over: refused after forty of them, as by the kernel."""
    for number in range(50):
        (tmp_path / str(number)).symlink_to("/".join([str(number + 1)] * 200))
    with Root.at(str(tmp_path)) as root:
        assert _look(root, "0") in ("ELOOP", "ENOENT", "ENAMETOOLONG")
