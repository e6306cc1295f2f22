"""systemd-coredump's journal entries about cores, read with journalctl.

The export format (systemd's docs/JOURNAL_EXPORT_FORMATS.md) gives the length of every value that is not plain text, so
a field of any size and content is read or skipped piece by piece; JSON would have to be held as a whole.

Fields: systemd.journal-fields(7) and src/coredump/coredump.c, systemd 252. ``COREDUMP_ENVIRON`` is never requested.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import time
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import AbstractSet, BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, cast

from .. import programs
from ..errors import PermissionRefused, TargetNotFound, ToolFailed, ToolMissing, UsageError
from .authorship import FIELDS, WRITTEN_BY_IT, by_coredump

PREFIX = "coredumpctl:"
#: SD_MESSAGE_COREDUMP of <systemd/sd-messages.h>: one message for each core.
MESSAGE_ID = "fc2e22bc6ee647b6b90729ab34a250b1"
_WANTED = (
    "MESSAGE", "COREDUMP_PID", "COREDUMP_COMM", "COREDUMP_EXE", "COREDUMP_CMDLINE", "COREDUMP_SIGNAL",
    "COREDUMP_TIMESTAMP", "COREDUMP_HOSTNAME", "COREDUMP_UNIT", "COREDUMP_USER_UNIT", "COREDUMP_CGROUP",
    "COREDUMP_ROOT", "COREDUMP_CONTAINER_CMDLINE", "COREDUMP_FILENAME", "COREDUMP_TRUNCATED", "_HOSTNAME", "_BOOT_ID",
    *FIELDS,
)  # fmt: skip
_OURS = {*_WANTED, "__CURSOR", "__REALTIME_TIMESTAMP"}

#: Limits: bytes of a message, bytes of any other field, number of entries, bytes of all entries.
_LONGEST, _LONGEST_FIELD, MOST_ENTRIES, _MOST_BYTES = 64 << 10, 4096, 10_000, 64 << 20
_PIECE = 1 << 20
#: Seconds for all entries; and for the next piece of a core.
_DEADLINE_S, _STALL_S = 60.0, 60.0
#: journalctl's messages about missing permissions (systemd 252, src/shared/logs-show.c).
_REFUSED = re.compile(r"insufficient permissions|not seeing messages from other users|Permission denied")
RIGHTS = "run as root, or join the group systemd-journal (usermod -aG systemd-journal NAME)"


class Where(NamedTuple):
    """The journal to read, and the time from which on."""

    directory: Optional[Path] = None  # as `coredumpctl -D`
    since: Optional[str] = None  # as `journalctl --since`


def where(targets: Sequence[str], since: Optional[str], directory: Optional[Path]) -> Where:
    """Return what a command line says about the journal. Raises UsageError if no target is in the journal."""
    option = "--since" if since else "-D" if directory else None
    if option and not any(target.startswith(PREFIX) for target in targets):
        raise UsageError(
            f"{option} is for cores in the journal, but no target is one", "use coredumpctl:last, for example"
        )
    return Where(directory, since)


class Entry(NamedTuple):
    """One journal entry; values are bytes, cut to 4 KB, the message's text to 64 KB."""

    fields: Dict[str, bytes]

    @property
    def genuine(self) -> bool:
        """Whether systemd-coredump wrote it."""
        return by_coredump(self.text)

    @property
    def size(self) -> int:
        """Bytes of all values."""
        return sum(map(len, self.fields.values()))

    def text(self, name: str, most: int = 4096) -> Optional[str]:
        """Return the first ``most`` bytes of a field as text; None when it is missing or empty."""
        value = self.fields.get(name)
        return os.fsdecode(value[:most]).strip() or None if value else None

    def number(self, name: str) -> Optional[int]:
        """Return a field's decimal number, or None."""
        value = self.fields.get(name, b"").strip()
        return int(value) if re.fullmatch(rb"\d{1,19}", value) else None


class Found(NamedTuple):
    """The result of a look-up in the journal."""

    entries: List[Entry]  # newest first
    hidden: bool  # there are messages that this user cannot read
    more: bool  # there are older entries that were not read


def entries(
    where: Where, matches: Sequence[str] = (), deadline_s: float = _DEADLINE_S, *, genuine: bool = True
) -> Found:
    """Return the journal's entries about cores.

    - ``matches``: ``FIELD=value``, for journalctl
    - ``genuine``: only entries by systemd-coredump; journalctl filters the others, of which there may be any number

    Raises:
    - ToolMissing, ToolFailed, PermissionRefused
    - UsageError: journalctl rejects a time or match
    - TargetNotFound: the directory does not exist
    """
    words = ["-r", f"--output-fields={','.join(_WANTED)}"]
    words += [f"--since={where.since}"] if where.since else []
    asked = [f"MESSAGE_ID={MESSAGE_ID}", *matches]
    ours = {match.partition("=")[0] for authorship in WRITTEN_BY_IT for match in authorship}
    if genuine and not any(match.partition("=")[0] in ours for match in matches):  # else they would be alternatives
        for number, authorship in enumerate(WRITTEN_BY_IT):
            words += [*["+"][: number > 0], *asked, *authorship]
    else:
        words += asked
    found: List[Entry] = []
    size = 0
    with _journalctl(where, words, time.monotonic() + deadline_s) as run:
        for entry in parsed(run.out, _OURS):
            if genuine and not entry.genuine:
                continue
            size += entry.size
            if len(found) == MOST_ENTRIES or size > _MOST_BYTES:
                return Found(found, False, True)
            found.append(entry)
        said = run.end()
    hidden = _REFUSED.search(said) is not None
    if not found and hidden:
        raise PermissionRefused("this user may not read the journal, so its cores are not known", RIGHTS)
    return Found(found, hidden, False)


def stored_core(where: Where, entry: Entry) -> Iterator[bytes]:
    """Yield the core in pieces where the journal holds it (``Storage=journal``), else nothing. Raises as ``entries``."""
    words = ["--output-fields=COREDUMP", f"--cursor={entry.text('__CURSOR') or ''}", "-n", "1"]
    with _journalctl(where, words, None) as run:  # limited by the core's size instead: POSTMORTEM_MAX_UNPACKED
        yield from _field(run.out, b"COREDUMP")


# ---------------------------------------------------------------------- journalctl


class _Output(RawIOBase):
    """journalctl's output, and the beginning of its stderr, read in parallel.

    ``until``: time.monotonic() limit for everything; None: each piece has its own deadline. Reading raises ToolFailed
    after it.
    """

    def __init__(self, process: subprocess.Popen[bytes], until: Optional[float]) -> None:
        super().__init__()
        self._out, self._errors = cast(BinaryIO, process.stdout).fileno(), cast(BinaryIO, process.stderr).fileno()
        self._until = until
        self._poll = select.poll()
        for descriptor in (self._out, self._errors):
            self._poll.register(descriptor, select.POLLIN)
        self.said = b""
        self._open = 2

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read the next bytes of the output; collect stderr meanwhile."""
        until = self._until if self._until is not None else time.monotonic() + _STALL_S
        while self._open:
            ready = self._poll.poll(max(0.0, until - time.monotonic()) * 1000)
            if not ready:
                raise ToolFailed("journalctl did not end in time", "give --since, or -D with a smaller journal")
            for descriptor, _event in ready:
                data = os.read(descriptor, len(buffer) if descriptor == self._out else _PIECE)
                if not data:
                    self._poll.unregister(descriptor)
                    self._open -= 1
                elif descriptor == self._errors:
                    self.said = (self.said + data)[:_LONGEST]
                else:
                    buffer[: len(data)] = data
                    return len(data)
        return 0


class _Run:
    """One run of journalctl."""

    def __init__(self, process: subprocess.Popen[bytes], where: Where, until: Optional[float]) -> None:
        self._output = _Output(process, until)
        self.out = cast(BinaryIO, BufferedReader(self._output, _PIECE))
        self._process, self._where = process, where

    def end(self) -> str:
        """Return its stderr, once all of its output was read. Raises as ``entries``."""
        status = self._process.wait()
        said = self._output.said.decode("utf-8", "replace")
        if status != 0 and not _REFUSED.search(said):
            raise self._failed(said)
        return said

    def _failed(self, said: str) -> Exception:
        first = (said.strip().splitlines() or ["no reason given"])[0][:200]
        if "timestamp" in first:
            return UsageError(
                f"--since {self._where.since!r} is not a time that journalctl understands",
                "write '2026-01-31 12:00', 'yesterday' or '-2h': see systemd.time(7)",
            )
        if "Failed to add match" in first:
            return UsageError("journalctl does not understand this match", "write FIELD=value, as for coredumpctl")
        return ToolFailed(f"journalctl says: {first}", "`coredumpctl list` shows whether the journal can be read")


@contextlib.contextmanager
def _journalctl(where: Where, words: Sequence[str], until: Optional[float]) -> Iterator[_Run]:
    program = programs.find("journalctl")
    if program is None:
        raise ToolMissing(
            "journalctl is not installed: there is no systemd journal here, or it cannot be read",
            "name the core file itself, or run this on the machine that has the journal",
        )
    if where.directory is not None:
        if not where.directory.is_dir():
            raise TargetNotFound(f"there is no directory {where.directory}", "give -D a directory with *.journal files")
        words = ["-D", str(where.directory.absolute()), *words]
    command = [program, "--no-pager", "-o", "export", *words]
    quiet = {"LC_ALL": "C", "SYSTEMD_LOG_TARGET": "console", "SYSTEMD_COLORS": "0"}
    environment = programs.environment("journalctl", quiet)
    with programs.start(
        "journalctl",
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            yield _Run(process, where, until)
        finally:
            process.kill()


# ---------------------------------------------------------------------- the export format


def parsed(stream: BinaryIO, wanted: AbstractSet[str]) -> Iterator[Entry]:
    """Yield each entry with its wanted fields, the first of each name; an incomplete entry is left out."""
    fields: Dict[str, bytes] = {}
    for name, value in _fields(stream):
        if name == b"":
            yield Entry(fields)
            fields = {}
            continue
        key = name.decode("latin-1")
        if key in wanted and key not in fields:
            fields[key] = b"".join(value)[: _LONGEST if key == "MESSAGE" else _LONGEST_FIELD]


def _field(stream: BinaryIO, wanted: bytes) -> Iterator[bytes]:
    """Yield the first field of that name in the first entry, in pieces."""
    for name, value in _fields(stream, whole=wanted):
        if name == b"":
            return
        if name == wanted:
            yield from value
            return


def _fields(stream: BinaryIO, whole: bytes = b"") -> Iterator[Tuple[bytes, Iterator[bytes]]]:
    """Yield (name, its value in pieces) for every field, and (b"", nothing) at the end of each entry.

    Values are cut to what is kept, except that of the field ``whole``.
    """
    while True:
        line = stream.readline(_LONGEST)
        if not line:
            return
        if line == b"\n":
            yield b"", iter(())
            continue
        name, equals, text = line.partition(b"=")
        if equals:
            yield name, iter((text.rstrip(b"\n"),))
            while line and not line.endswith(b"\n"):  # skip the rest of a long one
                line = stream.readline(_PIECE)
            continue
        size = int.from_bytes(stream.read(8), "little")
        name = name.rstrip(b"\n")
        left = _Left(stream, size)
        yield name, left.pieces(size if name == whole else _LONGEST)
        left.skip()
        stream.read(1)  # the newline after it


class _Left:
    """The unread rest of a binary value in the stream."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._size = stream, size

    def pieces(self, most: int) -> Iterator[bytes]:
        """Yield at most ``most`` bytes of the value."""
        while self._size and most > 0:
            piece = self._stream.read(min(_PIECE, self._size, most))
            if not piece:
                self._size = 0
                return
            self._size -= len(piece)
            most -= len(piece)
            yield piece

    def skip(self) -> None:
        """Skip the rest of the value."""
        for _piece in self.pieces(self._size):
            pass
