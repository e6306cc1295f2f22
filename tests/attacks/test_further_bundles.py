"""Bundles, archives, places and environments that another user has prepared, read and written by root."""

from __future__ import annotations

import bz2
import contextlib
import json
import lzma
import os
import stat
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional, Sequence

import pytest

from tests.support.capturing import ROOT, environment

from . import further
from .bundles import PID, SECRET, write_bundle
from .further import AS_OTHER, BOUND_S, OTHER, PYTHON, Place, give, harmless

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and another user beside it")]


@pytest.fixture
def place() -> Iterator[Place]:
    with further.place() as made:
        yield made


@pytest.fixture
def bundle(place: Place) -> Path:
    """A harmless bundle, not yet given to the other user."""
    return write_bundle(place.theirs / "bundle", str(place.theirs / "app.py"), uid=OTHER, gid=OTHER)


def run(*words: str, cwd: Optional[Path] = None, **changes: str) -> subprocess.CompletedProcess[str]:
    """The command line, within bounds."""
    return subprocess.run(
        [sys.executable, "-m", "postmortem", *words],
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        cwd=cwd or ROOT,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=BOUND_S,
        check=False,
    )


def every_command(
    target: Path, into: Path, statuses: Any = (0, 1), also: Sequence[str] = ("report", "debug"), **changes: Any
) -> None:
    """What reads a bundle, over this one; what they say and write is harmless."""
    harmless(run("analyze", "-f", "json", str(target), **changes), statuses)
    if "report" in also:
        harmless(run("report", str(target), **changes), statuses)
    stripped = into / "stripped"
    done = run("report", str(target), "--strip", "-o", str(stripped), **changes)
    harmless(done, statuses)
    if stripped.exists():
        assert done.returncode == 0
        assert SECRET not in further.kept(stripped)
    if "debug" in also:
        harmless(run("debug", str(target), "--batch", "-ex", "info files", **changes), (*statuses, 2))


# ---------------------------------------------------------------------- what lies in a bundle

MEMBERS = [
    "evidence.json",
    "manifest.json",
    f"raw/proc/{PID}/process.json",
    f"raw/pyspy/{PID}.chrometrace.json",
    f"raw/cores/{PID}.core",
    f"raw/exe/{PID}",
    "raw/roots/1{base}/theirs/app.py",
]


def _hard(path: Path, hidden: Path) -> None:
    os.link(hidden, path)


def _soft(path: Path, hidden: Path) -> None:
    path.symlink_to(hidden)


def _fifo(path: Path, _hidden: Path) -> None:
    os.mkfifo(path)


def _device(path: Path, _hidden: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:  # a container: the link leads to the very device
        path.symlink_to("/dev/zero")


def _folder(path: Path, _hidden: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("member", MEMBERS, ids=lambda name: name.replace("/", "_"))
@pytest.mark.parametrize("kind", [_hard, _soft, _fifo, _device, _folder])
def test_something_else_in_a_members_place(place: Place, bundle: Path, member: str, kind: Callable[..., None]) -> None:
    """A hard link to a file of root's, a symbolic one, a FIFO, a device, a directory, in the place of each member: it is not
    read, waited for, or shown, also where its content would be welcome."""
    facts = {"root": "other", "kept_root": "raw/roots/1"} if "roots" in member else {}
    if facts:
        write_bundle(bundle, str(place.theirs / "app.py"), uid=OTHER, gid=OTHER, **facts)
    path = bundle / member.format(base=place.base)
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    for each in (bundle, *bundle.rglob("*")):
        os.lchown(each, OTHER, OTHER)
    kind(path, place.hidden)
    os.lchown(path, *((0, 0) if kind is _hard else (OTHER, OTHER)))
    every_command(bundle, place.base, also=("debug",) if member.startswith("raw/") else ("report",))


@pytest.mark.parametrize("owned", [True, False], ids=["theirs", "downloaded by root"])
def test_recorded_evidence_that_cites_files_of_roots(place: Place, bundle: Path, owned: bool) -> None:
    """Evidence, and a recorded stack, that name root's source, /etc/shadow and the kernel's files as the program's: no line of
    root's own comes into a bundle that is made to be shown, whoever owns the directory by now."""
    hostile = write_bundle(place.theirs / "cites", str(place.hidden), uid=0, gid=0)
    if owned:
        give(hostile)
        give(bundle)
    made = run("analyze", "-f", "json", str(bundle))
    assert made.returncode == 0, made.stderr
    with_evidence = place.theirs / "recorded"
    done = run("report", str(bundle), "--strip", "-o", str(with_evidence))
    assert done.returncode == 0, done.stderr
    text = (with_evidence / "evidence.json").read_text()
    (with_evidence / "evidence.json").write_text(text.replace(str(place.theirs / "app.py"), str(place.hidden)))
    if owned:
        give(with_evidence)
        every_command(hostile, place.base)
    else:
        harmless(run("report", str(with_evidence)), (0,))
    for number, source in enumerate((hostile, with_evidence) if owned else (with_evidence,)):
        out = place.base / f"again-{number}"
        harmless(run("report", str(source), "--strip", "-o", str(out)), (0,))
        assert SECRET not in further.kept(out)


MANIFESTS: Dict[str, Any] = {
    "pids without end": {"processes": list(range(1, 400_000)), "root_pid": 1},
    "pids that are none": {"processes": [-1, 0, True, 1.5, "7", None, [7], 1 << 70, PID], "root_pid": "../.."},
    "paths": {"processes": ["/etc", "../../ours", PID], "bundle": "{ours}", "root": "{ours}", "reports": ["{hidden}"]},
    "not an object": [1, 2, 3],
    "steps": {"processes": [PID], "steps": {"a": 1}, "command": "{hidden}", "stripped": "{hidden}"},
    "all wrong": {"processes": {"7": 7}, "steps": [1, None, {"ok": False, "step": [], "subject": {}}], "command": [[]],
                  "timings": "x", "schema": 7, "environment": 3},
}  # fmt: skip


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS)
def test_manifests_that_name_what_is_not_theirs(place: Place, bundle: Path, manifest: Any) -> None:
    """Pids without end, pids that are none, absolute names, other bundles, values of other types: nothing but the bundle's own
    files is read, and in bounded time."""
    text = json.dumps(manifest).replace("{ours}", str(place.ours)).replace("{hidden}", str(place.hidden))
    (bundle / "manifest.json").write_text(text)
    give(bundle)
    every_command(bundle, place.base)


@pytest.mark.parametrize(
    "facts",
    [
        {"root": "{ours}", "kept_root": "../../ours"},
        {"kept_root": "{ours}"},
        {"root": 7, "kept_root": ["/"]},
        {"cwd": "{ours}", "exe": "{hidden}", "argv": ["python", "{hidden}"]},
        {"ns_pids": [1 << 80], "uid": -1, "gid": 1 << 70},
    ],
    ids=["up", "absolute", "types", "here", "numbers"],
)
def test_facts_that_name_roots_directory(place: Place, facts: Dict[str, Any]) -> None:
    """A process.json that says that its files are in root's directory, and it root's process: they are not shown."""
    text = json.dumps(facts).replace("{ours}", str(place.ours)).replace("{hidden}", str(place.hidden))
    hostile = write_bundle(
        place.theirs / "bundle", "secret.py", **{"cwd": str(place.ours), "uid": 0, **json.loads(text)}
    )
    give(hostile)
    every_command(hostile, place.base)


def test_directories_of_a_bundle_that_are_links(place: Place) -> None:
    """`raw`, `raw/proc` and `raw/proc/PID` lead to a bundle that only root may read: nothing of it is shown."""
    private = write_bundle(place.base / "private", f"/x/{SECRET}.py")
    private.chmod(0o700)
    for number, name in enumerate(("raw", "raw/proc", f"raw/proc/{PID}", "raw/pyspy")):
        hostile = write_bundle(place.theirs / f"bundle-{number}", "/x/app.py")
        moved = hostile / name
        moved.rename(place.theirs / f"moved-{number}")
        moved.symlink_to(private / name)
        give(hostile)
        every_command(hostile, place.theirs / f"moved-{number}")


# ---------------------------------------------------------------------- archives

MANIFEST = json.dumps({"schema": "postmortem.manifest/1", "processes": [PID], "steps": []}).encode()


def _raw_zip(
    name: bytes,
    data: bytes,
    *,
    method: int = 0,
    packed: Optional[bytes] = None,
    flags: int = 0,
    size: Optional[int] = None,
    mode: int = 0,
    extra: bytes = b"",
    comment: bytes = b"",
    offset: int = 0,
) -> bytes:
    """An archive of one entry, each field as it is wished."""
    body = data if packed is None else packed
    length = len(data) if size is None else size
    common = struct.pack("<HHHHIII", flags, method, 0, 33, zlib.crc32(data), min(len(body), 0xFFFFFFFF), length)
    local = b"PK\3\4" + struct.pack("<H", 45) + common + struct.pack("<HH", len(name), 0) + name + body
    central = b"PK\1\2" + struct.pack("<HH", 0x032D, 45) + common
    central += struct.pack("<HHHHHII", len(name), len(extra), 0, 0, 0, mode << 16, offset) + name + extra
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), len(comment))
    return local + central + end + comment


def _lzma(dictionary: int, body: bytes) -> bytes:
    return struct.pack("<BBHBI", 9, 4, 5, 0x5D, dictionary) + body


ZIPS: Dict[str, bytes] = {
    "symbolic link": _raw_zip(b"evidence.json", b"/etc/shadow", mode=stat.S_IFLNK | 0o777),
    "device": _raw_zip(b"evidence.json", b"", mode=stat.S_IFCHR | 0o666),
    "fifo": _raw_zip(b"evidence.json", b"", mode=stat.S_IFIFO | 0o666),
    "set-user-id": _raw_zip(b"manifest.json", MANIFEST, mode=stat.S_IFREG | 0o6777),
    "absolute": _raw_zip(b"/tmp/postmortem-owned/manifest.json", MANIFEST),
    "upwards": _raw_zip(b"../../manifest.json", MANIFEST),
    "other encoding": _raw_zip(b"r\x84w/\xff\xfe.json", MANIFEST),
    "broken utf-8": _raw_zip(b"raw/\xff\xfe.json", MANIFEST, flags=0x800),
    "zero in the name": _raw_zip(b"manifest.json\0/../x", MANIFEST),
    "no name": _raw_zip(b"", MANIFEST),
    "dots": _raw_zip(b"././.", MANIFEST),
    "huge comment": _raw_zip(b"manifest.json", MANIFEST, comment=b"PK\5\6" * 16_000),
    "zip64 of all sizes": _raw_zip(
        b"manifest.json", MANIFEST, size=0xFFFFFFFF, extra=struct.pack("<HHQQ", 1, 16, (1 << 64) - 1, (1 << 63) - 1)
    ),
    "zip64 cut": _raw_zip(b"manifest.json", MANIFEST, size=0xFFFFFFFF, extra=struct.pack("<HH", 1, 4) + b"1234"),
    "extra that lies": _raw_zip(b"manifest.json", MANIFEST, extra=struct.pack("<HH", 1, 60_000)),
    "unicode extra": _raw_zip(b"manifest.json", MANIFEST, extra=struct.pack("<HHBI", 0x7075, 9, 1, 0) + b"\xff../"),
    "elsewhere": _raw_zip(b"manifest.json", MANIFEST, offset=1 << 31),
    "descriptor": _raw_zip(b"manifest.json", MANIFEST, flags=8, size=1 << 31),
    "encrypted": _raw_zip(b"manifest.json", MANIFEST, flags=1),
    "patched": _raw_zip(b"manifest.json", MANIFEST, flags=0x20),
    "strongly encrypted": _raw_zip(b"manifest.json", MANIFEST, flags=0x41),
    "method that is none": _raw_zip(b"manifest.json", MANIFEST, method=99),
    "implode": _raw_zip(b"manifest.json", MANIFEST, method=6),
    "deflate, damaged": _raw_zip(b"manifest.json", MANIFEST, method=8, packed=b"\xff" * 100),
    "bzip2, damaged": _raw_zip(b"manifest.json", MANIFEST, method=12, packed=b"BZh9" + b"\xff" * 100),
    "lzma, damaged": _raw_zip(b"manifest.json", MANIFEST, method=14, packed=_lzma(1 << 16, b"\xff" * 100)),
    "lzma, no head": _raw_zip(b"manifest.json", MANIFEST, method=14, packed=b"\1"),
    "lzma, wrong head": _raw_zip(b"manifest.json", MANIFEST, method=14, packed=struct.pack("<BBH", 9, 4, 3) + b"\xff" * 50),
    "lzma, wrong properties": _raw_zip(
        b"manifest.json", MANIFEST, method=14, packed=b"\x09\x04\x05\0\xff\xff\xff\xff\xff" + b"x" * 50
    ),
    "lzma, dictionary of 4 GB": _raw_zip(b"manifest.json", MANIFEST, method=14, packed=_lzma(0xFFFFFFFF, b"\0" * 100)),
    "lzma, sound": _raw_zip(b"manifest.json", MANIFEST, method=14, packed=_lzma(1 << 16, lzma.compress(
        MANIFEST, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 16}]))),
    "bzip2 that becomes 4 GB": _raw_zip(
        b"manifest.json", b"", method=12, size=0xFFFFFFFE, packed=bz2.compress(bytes(45_000_000)) * 96
    ),
    "zstd, damaged": _raw_zip(b"manifest.json", MANIFEST, method=93, packed=b"\x28\xb5\x2f\xfd" + b"\xff" * 100),
    "no archive": b"PK\5\6" + b"\xff" * 18,
    "cut": _raw_zip(b"manifest.json", MANIFEST)[:40],
}  # fmt: skip


@pytest.mark.parametrize("data", ZIPS.values(), ids=ZIPS)
def test_archives_whose_fields_lie(place: Place, data: bytes) -> None:
    """Entries of kinds, names, sizes, methods and encodings that no bundle has: one sentence, nothing left in TMPDIR, nothing
    outside of it, and no more memory than there is."""
    scratch = place.base / "tmp"
    scratch.mkdir()
    (place.theirs / "b.zip").write_bytes(data)
    give(place.theirs)
    for words in (("analyze",), ("report", "--strip", "-o", str(place.base / "out"))):
        done = run(words[0], str(place.theirs / "b.zip"), *words[1:], TMPDIR=str(scratch))
        harmless(done, (0, 1))
        assert done.returncode == 0 or done.stderr.count("\n") <= 2, done.stderr
    assert not list(scratch.iterdir())
    assert sorted(os.listdir(place.theirs)) == ["b.zip"]
    assert not Path("/tmp/postmortem-owned").exists()


TREES: Dict[str, Dict[str, bytes]] = {
    "file, then below it": {"raw": b"x", "raw/proc/7/process.json": b"{}"},
    "below it, then file": {"raw/proc/7/process.json": b"{}", "raw": b"x"},
    "folder, then file": {"raw/": b"", "raw": b"x"},
    "one name in two spellings": {"manifest.json": MANIFEST, "./manifest.json": b"[]", "manifest.json/": b""},
    "temporary name": {".manifest.json.part": b"x", "manifest.json": MANIFEST, ".manifest.json.part/": b""},
    "two tops": {"a/manifest.json": MANIFEST, "b/manifest.json": MANIFEST},
    "tops in tops": {"a/b/c/d/manifest.json": MANIFEST},
    "folder with content": {"raw/": b"x" * 1000, "manifest.json": MANIFEST},
    "a thousand deep": {"a/" * 1000 + "manifest.json": MANIFEST},
    "long component": {"x" * 300: b"", "manifest.json": MANIFEST},
    "top with orders to a terminal": {"\x1b]0;owned\x07/manifest.json": MANIFEST},
    "top with a line": {"a\n##vso[task.complete]/manifest.json": MANIFEST},
}


@pytest.mark.parametrize("entries", TREES.values(), ids=TREES)
def test_archives_whose_names_contradict_each_other(place: Place, entries: Dict[str, bytes]) -> None:
    """A file that is a directory as well, one name twice, nested tops, names with orders: one sentence or the bundle."""
    scratch = place.base / "tmp"
    scratch.mkdir()
    archive = place.theirs / "b.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for name, data in entries.items():
            made.writestr(name, data)
    give(place.theirs)
    for words in (("analyze",), ("report", "--strip", "-o", str(place.base / "out")), ("debug", "--batch")):
        harmless(run(words[0], str(archive), *words[1:], TMPDIR=str(scratch)), (0, 1))
    assert not list(scratch.iterdir())


# ---------------------------------------------------------------------- places


@pytest.mark.parametrize("kind", ["fifo", "hard link", "link", "dangling link", "folder", "file", "socket"])
@pytest.mark.parametrize(
    "words", [("analyze", "--report"), ("report", "--report"), ("report", "--strip", "-o")], ids="-".join
)
def test_a_name_in_tmp_that_another_user_took_first(place: Place, bundle: Path, kind: str, words: Any) -> None:
    """In a sticky directory the other user has made what root then names: nothing waits for a reader, nothing is given to the
    one who made it, no file of root's is overwritten."""
    sticky = place.base / "tmp"
    sticky.mkdir()
    sticky.chmod(0o1777)
    taken = sticky / ("r.zip" if "-o" in words else "r.json")
    if kind == "fifo":
        os.mkfifo(taken)
    elif kind == "hard link":
        os.link(place.hidden, taken)
    elif kind == "link":
        taken.symlink_to(place.hidden)
    elif kind == "dangling link":
        taken.symlink_to(place.ours / "new")
    elif kind == "folder":
        taken.mkdir()
    elif kind == "file":
        taken.write_text("mine")
    else:
        import socket  # noqa: PLC0415 - one case

        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(taken))
    if kind != "hard link":
        os.lchown(taken, OTHER, OTHER)
    done = run(words[0], str(bundle), *words[1:], str(taken))
    harmless(done, (0,) if kind == "hard link" and "-o" not in words else (1,))
    if kind != "hard link":
        assert os.lstat(taken).st_uid == OTHER
    assert kind != "file" or taken.read_text() == "mine"
    assert kind != "folder" or not list(taken.iterdir())
    assert sorted(os.listdir(sticky)) == [taken.name]


SWAP = """
import ctypes, os, sys
os.chdir(sys.argv[1])
exchange = ctypes.CDLL(None, use_errno=True).renameat2
pairs = [tuple(pair.encode().split(b"=")) for pair in sys.argv[2:]]
print("up", flush=True)
while True:
    for one, other in pairs:
        exchange(-100, one, -100, other, 2)
"""


@contextlib.contextmanager
def swapping(folder: Path, *pairs: str) -> Iterator[None]:
    """The other user exchanges names in a folder, atomically and without end, until the block ends."""
    with subprocess.Popen(
        [PYTHON, "-c", SWAP, str(folder), *pairs], stdout=subprocess.PIPE, text=True, **AS_OTHER
    ) as swapper:
        try:
            assert swapper.stdout is not None
            assert swapper.stdout.readline() == "up\n"
            yield
        finally:
            swapper.kill()


def test_members_that_are_exchanged_while_they_are_read(place: Place, bundle: Path) -> None:
    """Files change places with links to root's, FIFOs and directories, directories with links to a private bundle, while every
    command reads them: nothing of root's is shown, none of them waits."""
    private = write_bundle(place.base / "private", f"/x/{SECRET}.py")
    private.chmod(0o700)
    (bundle / "soft").symlink_to(private / f"raw/proc/{PID}/process.json")
    os.mkfifo(bundle / "fifo")
    os.link(private / f"raw/pyspy/{PID}.chrometrace.json", bundle / "hard")
    (bundle / "raw2").symlink_to(private / "raw")
    (bundle / "manifest2").symlink_to(private / "manifest.json")
    for each in (bundle, *bundle.rglob("*")):
        if each.name != "hard":
            os.lchown(each, OTHER, OTHER)
    process, trace = f"raw/proc/{PID}/process.json", f"raw/pyspy/{PID}.chrometrace.json"
    with swapping(bundle, f"{process}=soft", f"{process}=fifo", f"{trace}=hard", "raw=raw2", "manifest.json=manifest2"):
        for number in range(2):
            every_command(bundle, place.base / f"round-{number}")
    assert sorted(os.listdir(private)) == ["manifest.json", "raw"]


def test_a_bundle_that_is_exchanged_for_a_private_one(place: Place, bundle: Path) -> None:
    """The target itself is a link of the other user's, now to its own bundle and now to one that only root may read: what is
    written for others holds nothing of the private one's sources."""
    (place.theirs / "away").symlink_to(place.hidden)
    archive = place.theirs / "b.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("manifest.json", MANIFEST)
    os.link(place.hidden, place.theirs / "hard.zip")
    for each in (bundle, *bundle.rglob("*"), archive, place.theirs / "away"):
        os.lchown(each, OTHER, OTHER)
    with swapping(place.theirs, "bundle=away", "b.zip=away", "b.zip=hard.zip", "b.zip=bundle"):
        for number in range(2):
            every_command(bundle, place.base / f"round-{number}", (0, 1))
            every_command(archive, place.base / f"round-zip-{number}", (0, 1))


def test_places_that_are_exchanged_while_they_are_written(place: Place) -> None:
    """Where a stripped bundle, an archive and a report go, the parent changes places with a link to root's directory."""
    source = write_bundle(place.base / "source", "/x/app.py")
    for name in ("out", "spare"):
        (place.theirs / name).mkdir()
        os.chown(place.theirs / name, OTHER, OTHER)
    (place.theirs / "away").symlink_to(place.ours)
    os.lchown(place.theirs / "away", OTHER, OTHER)
    with swapping(place.theirs, "out=away", "out=spare"):
        for number in range(3):
            out = place.theirs / "out"
            harmless(run("report", str(source), "--strip", "-o", str(out / f"s-{number}")), (0, 1))
            harmless(run("report", str(source), "--strip", "-o", str(out / f"s-{number}.zip")), (0, 1))
            harmless(run("analyze", str(source), "--report", str(out / f"r-{number}.json")), (0, 1))
    assert os.listdir(place.ours) == ["secret.py"]


# ---------------------------------------------------------------------- environment


def test_a_temporary_folder_of_another_user(place: Place) -> None:
    """TMPDIR is theirs, and what is unpacked there is renamed and replaced by theirs at once: nothing is written through
    their links, nothing of theirs is believed, nothing outside is removed."""
    (place.theirs / "tmp").mkdir()
    give(place.theirs)
    archive = place.base / "b.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("manifest.json", MANIFEST)
        made.writestr(f"raw/proc/{PID}/process.json", json.dumps({"pid": PID, "argv": ["python"], "threads": {}}))
        made.writestr(f"raw/cores/{PID}.core", b"\x7fELF" + bytes(3000))
    program = f"""
import os, sys
os.chdir({str(place.theirs / "tmp")!r})
print("up", flush=True)
number = 0
while True:
    for name in os.listdir("."):
        if not name.startswith("taken"):
            number += 1
            try:
                os.rename(name, f"taken-{{number}}")
                os.symlink({str(place.ours)!r}, name)
            except OSError:
                pass
"""
    with subprocess.Popen([PYTHON, "-c", program], stdout=subprocess.PIPE, text=True, **AS_OTHER) as attacker:
        try:
            assert attacker.stdout is not None
            assert attacker.stdout.readline() == "up\n"
            for number in range(2):
                every_command(archive, place.base / f"round-{number}", (0, 1), TMPDIR=str(place.theirs / "tmp"))
        finally:
            attacker.kill()


@pytest.mark.parametrize(
    "names", [("HOME",), ("XDG_CACHE_HOME",), ("XDG_CONFIG_HOME",), ("TMPDIR",), ("GDBHISTFILE",)], ids="".join
)
def test_directories_of_the_environment_that_lead_to_root(place: Place, bundle: Path, names: Any) -> None:
    """They are another user's, hold start-up files for gdb and Python that would write among root's files, and links in the
    place of each cache: nothing of it runs, and nothing is written through them."""
    home = place.theirs / "home"
    for folder in ("gdb", ".config/gdb", ".cache"):
        (home / folder).mkdir(parents=True)
    order = f"python open({str(place.ours / 'owned')!r}, 'w')\nshell touch {place.ours / 'owned'}\n"
    for name in (".gdbinit", ".gdbearlyinit"):
        (home / name).write_text(order)
        (home / "gdb" / name[1:]).write_text(order)
        (home / ".config/gdb" / name[1:]).write_text(order)
    for name in (".cache/postmortem", ".cache/gdb", "postmortem", "gdb/index", ".gdb_history"):
        (home / name).symlink_to(place.ours)
    (home / "sitecustomize.py").write_text(f"open({str(place.ours / 'owned')!r}, 'w')")
    (bundle / "raw/cores").mkdir()
    (bundle / f"raw/cores/{PID}.core").write_bytes(b"\x7fELF" + bytes(3000))
    give(place.theirs)
    every_command(bundle, place.base, (0, 1), **{name: str(home) for name in names})


@pytest.mark.parametrize("variable", ["POSTMORTEM_GDB", "POSTMORTEM_PYSPY"])
@pytest.mark.parametrize(
    "value",
    [
        "",
        "/dev/zero",
        "/proc/self/mem",
        "{fifo}",
        "{hidden}",
        "{theirs}",
        "x" * 5000,
        "../..",
        "~",
        "-",
        "\x1b]0;x\x07",
        "\udcff",
    ],
    ids=ascii,
)
def test_programs_that_are_none(place: Place, bundle: Path, variable: str, value: str) -> None:
    """A FIFO, a device, a directory, a file of root's, nonsense as the program to run: a sentence, at once."""
    os.mkfifo(place.base / "fifo")
    (place.base / "fifo").chmod(0o755)
    named = value.format(fifo=place.base / "fifo", hidden=place.hidden, theirs=place.theirs)
    (bundle / "raw/cores").mkdir()
    (bundle / f"raw/cores/{PID}.core").write_bytes(b"\x7fELF" + bytes(3000))
    changed: Dict[str, Any] = {variable: named}
    if variable == "POSTMORTEM_GDB":  # py-spy samples what runs, and reads no bundle
        harmless(run("analyze", str(bundle), **changed), (0, 1))
        harmless(run("debug", str(bundle), "--batch", **changed), (0, 1))
    harmless(run("doctor", **changed), (0, 1))


@pytest.mark.parametrize("variable", ["POSTMORTEM_MAX_UNPACKED", "POSTMORTEM_MAX_EVIDENCE"])
@pytest.mark.parametrize(
    "value",
    [
        "",
        "-1",
        "0",
        "nan",
        "inf",
        "1e400",
        "\u00b2",
        "9" * 5000,
        "1_0",
        "0x10",
        "1T" * 9,
        "\udcff",
        "\x1b[2J",
        " 7 ",
        "999999999T",
    ],
    ids=ascii,
)
def test_limits_that_are_none(place: Place, bundle: Path, variable: str, value: str) -> None:
    """A limit that is no number, too small or beyond all: a sentence with a documented status."""
    import gzip  # noqa: PLC0415 - one test

    core = place.theirs / "a.core.gz"
    core.write_bytes(gzip.compress(b"\x7fELF" + bytes(3000)))
    changed: Dict[str, Any] = {variable: value}
    harmless(run("analyze", str(core), **changed), (1, 2))
    (bundle / "evidence.json").write_text("{}")
    give(place.theirs)
    harmless(run("report", str(bundle), **changed), (0, 1, 2))


def test_a_target_that_never_ends(place: Place) -> None:
    """A FIFO, a device, a socket, the kernel's memory and links to them as the target of every command: a sentence, at once."""
    os.mkfifo(place.theirs / "a.zip")
    os.mkfifo(place.theirs / "a.core")
    (place.theirs / "zero.zip").symlink_to("/dev/zero")
    (place.theirs / "loop.zip").symlink_to("loop.zip")
    (place.theirs / "kcore").symlink_to("/proc/kcore")
    os.link(place.hidden, place.theirs / "hard.zip")
    os.link(place.hidden, place.theirs / "hard.core")
    for name in sorted(os.listdir(place.theirs)):
        for words in (("analyze",), ("report", "--strip"), ("debug", "--batch")):
            harmless(run(words[0], str(place.theirs / name), *words[1:]), (1, 2))
    for name in (
        "/proc/self/fd/0",
        "/dev/stdin",
        "/proc/self/mem",
        "/dev/full",
        "/proc/1/root",
        "/proc/self/ns/pid",
        "",
    ):
        harmless(run("analyze", name), (1, 2))
