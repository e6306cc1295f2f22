"""Decompression of cores: each codec yields bounded pieces, whatever the input contains.

Formats are recognised by their magic bytes, never by the file's name: RFC 8878 (zstd), the lz4 frame format 1.6.1, the
.xz file format 1.2.0, RFC 1952 (gzip). Libraries: Python's own zlib, lzma and (3.14) compression.zstd, else `zstandard`
and `lz4` of PyPI; where one of these cannot be installed, the command-line tool of the same name.

All of it runs in a child (`unpacked`): a codec may crash, loop, or request all memory. Limits on what a stream may
request: 128 MB of window for zstd (its libraries' own limit), 512 MB for xz (`xz -9` needs 65).
"""

from __future__ import annotations

import lzma
import os
import subprocess
import zlib
from importlib import import_module
from typing import Any, BinaryIO, Callable, Iterator, NamedTuple, Optional, Protocol, Tuple, cast

from .. import programs
from ..errors import ToolMissing

_CHUNK = 256 << 10  # of input
_PIECE = 4 << 20  # of output
#: Bytes of input at a time: zstd's library does not bound its output; 4 bytes can become a block of 128 KB, so this
#: much becomes 32 MB at most.
_ZSTD_BITE = 1 << 10
_MOST_XZ_MEMORY = 512 << 20


class Damaged(Exception):
    """Compressed data that end early or are malformed; the message says which."""


class Decoder(Protocol):
    """The interface shared by the decompressors of lzma, compression.zstd and lz4.frame."""

    eof: bool
    needs_input: bool
    unused_data: Optional[bytes]

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Return up to ``max_length`` bytes of output; -1: all."""
        ...


class Codec(NamedTuple):
    """A compression format: its magic bytes, its library and its command-line tool."""

    name: str
    magic: bytes
    make: Callable[[], Optional[Decoder]]  # returns None without its library
    tool: str
    options: Tuple[str, ...] = ()  # for the tool


class _Gzip:
    """zlib's decompressor with the interface of ``Decoder``."""

    unused_data: Optional[bytes] = b""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)  # 15 bits of window, and a gzip header
        self._kept = b""
        self.eof, self.needs_input = False, True

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Decompress up to ``max_length`` bytes."""
        out = self._inner.decompress(self._kept + data, max_length)
        self._kept, self.eof = self._inner.unconsumed_tail, self._inner.eof
        # a full piece may have left output inside, even when all input was consumed
        self.needs_input = not self._kept and len(out) < max_length
        self.unused_data = self._inner.unused_data
        return out


class _Zstandard:
    """The `zstandard` library's decompressor with the interface of ``Decoder``."""

    unused_data: Optional[bytes] = b""

    def __init__(self, library: Any) -> None:
        self._inner = library.ZstdDecompressor().decompressobj()
        self._data, self._at = b"", 0
        self.eof, self.needs_input = False, True

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Decompress the next bytes of input; ``max_length`` is not supported."""
        if data:
            self._data, self._at = self._data[self._at :] + data, 0
        bite = self._data[self._at : self._at + _ZSTD_BITE]
        self._at += len(bite)
        out = cast(bytes, self._inner.decompress(bite))
        self.eof = self._inner.eof
        if self.eof:
            self.unused_data = self._inner.unused_data + self._data[self._at :]
        self.needs_input = self._at >= len(self._data)
        return out


def _zstd() -> Optional[Decoder]:
    try:
        return cast(Decoder, import_module("compression.zstd").ZstdDecompressor())
    except ImportError:
        pass
    try:
        return _Zstandard(import_module("zstandard"))
    except ImportError:
        return None


def _lz4() -> Optional[Decoder]:
    try:
        return cast(Decoder, import_module("lz4.frame").LZ4FrameDecompressor())
    except ImportError:
        return None


def _xz() -> Decoder:
    return cast(Decoder, lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MOST_XZ_MEMORY))


CODECS = (
    Codec("zstd", b"\x28\xb5\x2f\xfd", _zstd, "zstd"),
    Codec("lz4", b"\x04\x22\x4d\x18", _lz4, "lz4"),
    Codec("xz", b"\xfd7zXZ\0", _xz, "xz", (f"--memlimit-decompress={_MOST_XZ_MEMORY}",)),
    Codec("gzip", b"\x1f\x8b", _Gzip, "gzip"),
)
_LONGEST_MAGIC = max(len(codec.magic) for codec in CODECS)
_MAX_SKIPPED = 10_000  # consecutive skippable frames


def recognise(source: BinaryIO) -> Optional[Codec]:
    """Return the codec of a file by its first bytes, or None; the file is positioned at the compressed data."""
    _skip_frames(source)
    at = source.tell()
    head = source.read(_LONGEST_MAGIC)
    source.seek(at)
    return next((codec for codec in CODECS if head.startswith(codec.magic)), None)


def _skip_frames(source: BinaryIO) -> None:
    """Skip zstd's and lz4's skippable frames, which contain metadata of tools such as pzstd."""
    for _ in range(_MAX_SKIPPED):
        at = source.tell()
        head = source.read(8)
        if len(head) < 8 or head[0] & 0xF0 != 0x50 or head[1:4] != b"\x2a\x4d\x18":
            source.seek(at)
            return
        source.seek(int.from_bytes(head[4:], "little"), os.SEEK_CUR)


def pieces(codec: Codec, source: BinaryIO) -> Iterator[bytes]:
    """Yield the decompressed content of an unbuffered file, from its position on, in pieces of at most 40 MB.

    Raises Damaged where the file ends early or is damaged; the pieces before are good. Raises ToolMissing.
    """
    return _by_tool(codec, source) if codec.make() is None else _by_library(codec, source)


def _by_library(codec: Codec, source: BinaryIO) -> Iterator[bytes]:
    """Decompress by the library: one stream or several consecutive ones, which gzip and xz allow padding after."""
    data = source.read(_CHUNK)
    while data and data.startswith(codec.magic[: len(data)]):
        decoder = cast(Decoder, codec.make())
        while not decoder.eof:
            if decoder.needs_input and not data:
                data = source.read(_CHUNK)
                if not data:
                    raise Damaged("it ends early")
            piece = _decompressed(decoder, data)
            data = b""
            if piece:
                yield piece
        source.seek(-len(decoder.unused_data or b""), os.SEEK_CUR)
        _skip_frames(source)
        data = source.read(_CHUNK)


def _decompressed(decoder: Decoder, data: bytes) -> bytes:
    try:
        return decoder.decompress(data, _PIECE)
    except MemoryError:
        raise
    except Exception as exc:  # each library has its own errors; lz4's is RuntimeError
        raise Damaged(f"its data are damaged ({_first_line(str(exc))})") from None


def _by_tool(codec: Codec, source: BinaryIO) -> Iterator[bytes]:
    program = programs.find(codec.tool)
    if program is None:
        library = "zstandard" if codec.name == "zstd" else codec.name
        raise ToolMissing(
            f"no library or program to unpack {codec.name} is installed",
            f"run `pip install {library}` in postmortem's environment, or `apt install {codec.tool}`",
        )
    said = os.memfd_create("postmortem-said", os.MFD_CLOEXEC)
    with programs.start(
        "decompressor",
        [program, "-dc", *codec.options],
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=said,
        start_new_session=True,
        preexec_fn=programs.ending_with_parent(),
    ) as process:
        try:
            out = cast(BinaryIO, process.stdout)
            yield from iter(lambda: out.read(_PIECE), b"")
            if process.wait() != 0:
                raise Damaged(f"{codec.tool} says: {_first_line(os.pread(said, _CHUNK, 0).decode('utf-8', 'replace'))}")
        finally:
            process.kill()
            os.close(said)


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[0][:120]
