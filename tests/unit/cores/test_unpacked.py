"""Compressed cores: every codec, by library and by tool, cut and hostile; nothing is left behind."""

from __future__ import annotations

import errno
import functools
import gzip
import lzma
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from postmortem.cores import codecs, sparse, unpacked
from postmortem.cores.codecs import CODECS, Codec
from postmortem.errors import NotACore, PostmortemError, ToolMissing, UsageError
from postmortem.foreign.unnamed import unnamed

from ...support import required

#: 24 MB of which one in eight is not zero, in runs that begin and end within pages.
HOLE = 3 << 20


def content() -> bytes:
    chance = random.Random(1)
    parts = [b"\x7fELF" + chance.getrandbits(8 * 5000).to_bytes(5000, "little")]
    for _ in range(8):
        parts += [bytes(HOLE - 777), chance.getrandbits(8 * 400_000).to_bytes(400_000, "little")]
    return b"".join([*parts, bytes(5000)])


DATA = content()


def by_zstd(data: bytes) -> bytes:
    try:
        from compression import zstd  # noqa: PLC0415 - Python 3.14
    except ImportError:
        return pytest.importorskip("zstandard").ZstdCompressor(write_checksum=True).compress(data)
    return zstd.compress(data)


PACK: Dict[str, Callable[[bytes], bytes]] = {
    "zstd": by_zstd,
    "lz4": lambda data: pytest.importorskip("lz4.frame").compress(data, store_size=False),
    "xz": lambda data: lzma.compress(data, preset=0),
    "gzip": lambda data: gzip.compress(data, 1),
}


@functools.lru_cache(maxsize=None)
def packed(name: str) -> bytes:
    """Return DATA as a codec packs it."""
    return PACK[name](DATA)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of its own, which must be empty afterwards."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    yield place
    assert list(place.iterdir()) == []


@pytest.fixture(params=["library", "tool"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The library, or, with none installed, the command-line tool."""
    if request.param == "tool":
        without = [codec._replace(make=lambda: None) for codec in CODECS]
        monkeypatch.setattr(codecs, "CODECS", tuple(without))
    return request.param


@pytest.fixture(params=CODECS, ids=lambda codec: codec.name)
def codec(request: pytest.FixtureRequest, way: str) -> Codec:
    if way == "tool":
        required.program(request.param.tool)
    return request.param


def unpack(path: Path, told: List[str]) -> bytes:
    with unpacked.unpacked(path, told.append) as plain:
        assert plain.short is None
        assert plain.path.stat().st_mode & 0o777 == 0o600
        assert plain.size == plain.path.stat().st_size
        return plain.path.read_bytes()


def test_every_codec_gives_the_core_back(codec: Codec, tmp_path: Path) -> None:
    """By the first bytes, whatever the file is called; byte for byte; with progress up to the end."""
    path = tmp_path / "no-suffix"
    told: List[str] = []
    path.write_bytes(packed(codec.name))
    known = unpacked.compressed(path)
    assert known is not None and known.name == codec.name
    assert unpack(path, told) == DATA
    assert told


def test_zeros_become_holes(tmp_path: Path) -> None:
    """The temporary file takes the room of what is not zero, no more than a page for each run's ends."""
    path = tmp_path / "core.gz"
    path.write_bytes(packed("gzip"))
    with unpacked.unpacked(path, lambda text: None) as plain:
        assert plain.path.stat().st_blocks * 512 < 8 * (400_000 + 2 * 4096) + 64 * 1024


def test_what_is_cut_is_kept_up_to_there(codec: Codec, tmp_path: Path) -> None:
    """A file that was copied half: what comes out is a beginning of the core, and it is said why the end is missing."""
    whole = packed(codec.name)
    path = tmp_path / "core"
    for share in (0.5, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        with unpacked.unpacked(path, lambda text: None) as plain:
            data = plain.path.read_bytes()
            assert plain.short
            assert DATA.startswith(data)
            assert len(data) > len(DATA) * (share - 0.25)


def test_damage_is_told_and_never_another_exception(codec: Codec, tmp_path: Path) -> None:
    """Flipped bytes: the file is unpacked up to there, or refused with a sentence; no traceback, no silent short file."""
    whole = packed(codec.name)
    chance, path = random.Random(3), tmp_path / "core"
    for _ in range(6):
        damaged = bytearray(whole)
        for _ in range(20):
            damaged[chance.randrange(10, len(damaged))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            with unpacked.unpacked(path, lambda text: None) as plain:
                assert plain.short or plain.path.read_bytes()
        except PostmortemError as exc:
            assert str(path) in str(exc)


def test_several_streams_in_a_row_are_one_core(tmp_path: Path) -> None:
    """gzip, xz and zstd files may be concatenated; padding behind them is no damage."""
    for name in ("gzip", "xz", "zstd"):
        path = tmp_path / name
        path.write_bytes(PACK[name](DATA[:100_000]) + PACK[name](DATA[100_000:]) + bytes(512 if name != "zstd" else 0))
        assert unpack(path, []) == DATA


@pytest.mark.parametrize("name", ["zstd", "lz4"])
def test_skippable_frames_are_skipped(name: str, tmp_path: Path) -> None:
    """pzstd begins its files with a frame of its own, and may put more of them between the streams."""
    note = b"\x50\x2a\x4d\x18" + (12).to_bytes(4, "little") + b"twelve bytes"
    path = tmp_path / "core"
    path.write_bytes(note + PACK[name](DATA[:100_000]) + note + PACK[name](DATA[100_000:]) + note)
    known = unpacked.compressed(path)
    assert known is not None and known.name == name
    assert unpack(path, []) == DATA


def test_what_is_no_core_is_refused_at_once(tmp_path: Path) -> None:
    """A compressed text, or bomb, is no core: one sentence, before it fills a disk."""
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(bytes(50 << 20)))
    with pytest.raises(NotACore, match="holds no ELF file"), unpacked.unpacked(path, lambda text: None):
        pass


@pytest.mark.parametrize("name", sorted(PACK))
def test_a_bomb_is_stopped(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the limit is refused with the limit and how to raise it."""
    path = tmp_path / "bomb"
    path.write_bytes(PACK[name](b"\x7fELF" + bytes(64 << 20)))
    monkeypatch.setenv(unpacked.VARIABLE, "32M")
    with pytest.raises(NotACore, match="more than 33554432 bytes") as caught:  # noqa: SIM117
        with unpacked.unpacked(path, lambda text: None):
            pass
    assert unpacked.VARIABLE in caught.value.next


def test_a_full_temporary_folder_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into the room that is left is refused before the disk is full."""
    path = tmp_path / "core.gz"
    path.write_bytes(packed("gzip"))
    place = os.statvfs(tmp_path)
    monkeypatch.setattr(sparse, "SPARE", place.f_bavail * place.f_frsize - (1 << 20))
    with pytest.raises(NotACore, match="does not fit") as caught, unpacked.unpacked(path, lambda text: None):
        pass
    assert "TMPDIR" in caught.value.next


def test_no_temporary_folder_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A TMPDIR that cannot be written to is named as such, not as a defect."""
    path = tmp_path / "core.gz"
    path.write_bytes(PACK["gzip"](DATA[:5000]))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    with pytest.raises(PostmortemError, match="no temporary file") as caught, unpacked.unpacked(path, print):
        pass
    assert "TMPDIR" in caught.value.next


def test_a_file_system_without_unnamed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name that is needed for a moment is gone at once; what is there else does not change."""
    really = os.open

    def refuse(path: Path, flags: int, *more: Any, **how: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return really(path, flags, *more, **how)

    monkeypatch.setattr(os, "open", refuse)
    descriptor = unnamed(str(tmp_path))
    try:
        assert os.write(descriptor, b"core") == 4
        assert os.pread(descriptor, 9, 0) == b"core"
        assert (os.fstat(descriptor).st_nlink, os.fstat(descriptor).st_mode & 0o777) == (0, 0o600)
    finally:
        os.close(descriptor)
    with pytest.raises(OSError, match="not supported"):
        unnamed(str(tmp_path / "missing"))


def test_a_limit_that_is_no_size_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped limit is not ignored."""
    monkeypatch.setenv(unpacked.VARIABLE, "lots")
    with pytest.raises(UsageError, match="lots"):
        unpacked.most()
    for text, size in (("10", 10), ("2k", 2048), ("3 GB", 3 << 30), ("1TiB", 1 << 40)):
        monkeypatch.setenv(unpacked.VARIABLE, text)
        assert unpacked.most() == size


def test_without_library_and_tool_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is there: one sentence with both ways out."""
    path = tmp_path / "core.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    monkeypatch.setattr(codecs, "CODECS", tuple(codec._replace(make=lambda: None) for codec in CODECS))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="zstd") as caught, unpacked.unpacked(path, lambda text: None):
        pass
    assert "pip install zstandard" in caught.value.next


def test_plain_files_are_not_compressed(tmp_path: Path) -> None:
    """A core, an empty file, a folder, a missing file: none is compressed."""
    for name, data in (("core", DATA[:100]), ("empty", b"")):
        (tmp_path / name).write_bytes(data)
        assert unpacked.compressed(tmp_path / name) is None
    assert unpacked.compressed(tmp_path) is None
    assert unpacked.compressed(tmp_path / "missing") is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_end_leaves_a_file(number: int, tmp_path: Path, folder: Path) -> None:
    """Ended in the middle by any signal, the process leaves nothing in the temporary folder."""
    path = tmp_path / "core.gz"
    path.write_bytes(packed("gzip"))
    program = (
        "import sys, time; from pathlib import Path; from postmortem.cores.unpacked import unpacked\n"
        "with unpacked(Path(sys.argv[1]), lambda text: None) as plain:\n"
        "    print(plain.size, flush=True); time.sleep(600)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert child.stdout is not None
    assert int(child.stdout.readline()) == len(DATA)
    child.send_signal(number)
    child.wait(60)
    child.stdout.close()
    assert list(folder.iterdir()) == []


def test_memory_stays_flat(tmp_path: Path) -> None:
    """A quarter of a gigabyte of zeros is unpacked in the memory that a megabyte takes, by every codec."""
    program = (
        "import resource, sys; from pathlib import Path; from postmortem.cores.unpacked import unpacked\n"
        "with unpacked(Path(sys.argv[1]), lambda text: None) as plain:\n"
        "    size, blocks = plain.size, plain.path.stat().st_blocks\n"
        "own = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(size, blocks, max(int(own), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\n"
    )
    size = 256 << 20
    for name, pack in PACK.items():
        (tmp_path / name).write_bytes(pack(b"\x7fELF" + bytes(size - 4)))
        said = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / name)], capture_output=True, text=True, check=True
        ).stdout.split()
        assert int(said[0]) == size
        assert int(said[1]) * 512 < 1 << 20
        assert int(said[2]) < 150 << 10, name  # KB
