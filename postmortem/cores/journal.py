"""What systemd-coredump noted in the journal about each core, read with journalctl.

The export format (systemd's docs/JOURNAL_EXPORT_FORMATS.md) says the length of whatever is no plain text, so a field of
any size and content is read or skipped piece by piece; JSON would have to be held as a whole. Fields: systemd.journal-
fields(7) and src/coredump/coredump.c, systemd 252. ``COREDUMP_ENVIRON`` is never asked for.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import AbstractSet, BinaryIO, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, cast

from .. import programs, signalling
from ..errors import PermissionRefused, TargetNotFound, ToolFailed, ToolMissing, UsageError

PREFIX = "coredumpctl:"
#: SD_MESSAGE_COREDUMP of <systemd/sd-messages.h>: one such message a core.
MESSAGE_ID = "fc2e22bc6ee647b6b90729ab34a250b1"
_WANTED = (
    "MESSAGE", "COREDUMP_PID", "COREDUMP_COMM", "COREDUMP_EXE", "COREDUMP_CMDLINE", "COREDUMP_SIGNAL",
    "COREDUMP_TIMESTAMP", "COREDUMP_HOSTNAME", "COREDUMP_UNIT", "COREDUMP_USER_UNIT", "COREDUMP_CGROUP",
    "COREDUMP_ROOT", "COREDUMP_CONTAINER_CMDLINE", "COREDUMP_FILENAME", "COREDUMP_TRUNCATED", "_HOSTNAME", "_BOOT_ID",
)  # fmt: skip
_OURS = {*_WANTED, "__CURSOR", "__REALTIME_TIMESTAMP"}

#: What is kept of a field, in bytes; of an entry, fields; and entries: more are not looked at.
_LONGEST, _MOST_FIELDS, MOST_ENTRIES = 64 << 10, 1000, 10_000
_PIECE = 1 << 20
_DEADLINE_S = 60.0
#: journalctl asks for rights in such words (systemd 252, src/shared/logs-show.c).
_REFUSED = re.compile(r"insufficient permissions|not seeing messages from other users|Permission denied")
RIGHTS = "run as root, or join the group systemd-journal (usermod -aG systemd-journal NAME)"


class Where(NamedTuple):
    """Which journal, and from when on."""

    directory: Optional[Path] = None  # as `coredumpctl -D`
    since: Optional[str] = None  # as `journalctl --since`


def where(targets: Sequence[str], since: Optional[str], directory: Optional[Path]) -> Where:
    """What a command line says of the journal. Raises UsageError for options that none of its targets could heed."""
    option = "--since" if since else "-D" if directory else None
    if option and not any(target.startswith(PREFIX) for target in targets):
        raise UsageError(f"{option} is about cores in the journal, and no target is", "coredumpctl:last, say")
    return Where(directory, since)


class Entry(NamedTuple):
    """One message; values as bytes, cut to 64 KB."""

    fields: Dict[str, bytes]

    def text(self, name: str, most: int = 4096) -> Optional[str]:
        """A field's value, its first ``most`` bytes; None when it is not there, or empty."""
        value = self.fields.get(name)
        return os.fsdecode(value[:most]).strip() or None if value else None

    def number(self, name: str) -> Optional[int]:
        value = self.fields.get(name, b"").strip()
        return int(value) if re.fullmatch(rb"\d{1,19}", value) else None


class Found(NamedTuple):
    entries: List[Entry]  # the newest first
    hidden: bool  # there are messages that this user may not read
    more: bool  # there are older ones that were not looked at


def entries(where: Where, matches: Sequence[str] = (), deadline_s: float = _DEADLINE_S) -> Found:
    """What the journal has of cores. matches: ``FIELD=value``, for journalctl.

    Raises ToolMissing, UsageError for a time or match that journalctl does not understand, TargetNotFound for a
    directory that is not there, PermissionRefused, ToolFailed.
    """
    words = ["-r", f"--output-fields={','.join(_WANTED)}", f"MESSAGE_ID={MESSAGE_ID}", *matches]
    words += [f"--since={where.since}"] if where.since else []
    found: List[Entry] = []
    with _journalctl(where, words, deadline_s) as run:
        for entry in parsed(run.out, _OURS):
            if len(found) == MOST_ENTRIES:
                return Found(found, False, True)
            found.append(entry)
        said = run.end()
    hidden = _REFUSED.search(said) is not None
    if not found and hidden:
        raise PermissionRefused("the journal may not be read, so its cores are not known", RIGHTS)
    return Found(found, hidden, False)


def stored_core(where: Where, entry: Entry) -> Iterator[bytes]:
    """The core itself where the journal holds it (``Storage=journal``), in pieces; nothing where it does not. Raises as
    ``entries``."""
    words = ["--output-fields=COREDUMP", f"--cursor={entry.text('__CURSOR') or ''}", "-n", "1"]
    with _journalctl(where, words, None) as run:  # whose limit is the core's size: POSTMORTEM_MAX_UNPACKED
        yield from _field(run.out, b"COREDUMP")
        run.kill()


# ---------------------------------------------------------------------- journalctl


class _Run:
    def __init__(self, process: subprocess.Popen[bytes], errors: BinaryIO, where: Where) -> None:
        self.out = cast(BinaryIO, process.stdout)
        self._process, self._errors, self._where = process, errors, where
        self._began = signalling.begun(process.pid)
        self.late = False

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        """From another thread, while ours may just have waited for it: then its id may be another's."""
        self.late = True
        signalling.send(self._process.pid, self._began, signal.SIGKILL)

    def end(self) -> str:
        """What it said on stderr, when all of its output is read. Raises what ``entries`` names."""
        status = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read(_LONGEST).decode("utf-8", "replace")
        if self.late:
            raise ToolFailed("journalctl did not end in time", "give --since, or -D with a smaller journal")
        if status != 0 and not _REFUSED.search(said):
            raise self._failed(said)
        return said

    def _failed(self, said: str) -> Exception:
        first = (said.strip().splitlines() or ["no reason given"])[0][:200]
        if "timestamp" in first:
            return UsageError(
                f"--since {self._where.since!r} is no time that journalctl understands",
                "say '2026-01-31 12:00', 'yesterday' or '-2h': see systemd.time(7)",
            )
        if "Failed to add match" in first:
            return UsageError("the match is none that journalctl understands", "FIELD=value, as coredumpctl takes it")
        return ToolFailed(f"journalctl says: {first}", "`coredumpctl list` shows whether the journal can be read")


@contextlib.contextmanager
def _journalctl(where: Where, words: Sequence[str], deadline_s: Optional[float]) -> Iterator[_Run]:
    program = programs.find("journalctl")
    if program is None:
        raise ToolMissing(
            "journalctl is not installed: there is no journal of systemd's here, or it cannot be read",
            "name the core file itself, or run this on the machine that has the journal",
        )
    if where.directory is not None:
        if not where.directory.is_dir():
            raise TargetNotFound(f"there is no directory {where.directory}", "-D names one with *.journal files")
        words = ["-D", str(where.directory.absolute()), *words]
    command = [program, "--no-pager", "-o", "export", *words]
    quiet = {"LC_ALL": "C", "SYSTEMD_LOG_TARGET": "console", "SYSTEMD_COLORS": "0"}
    environment = programs.environment("journalctl", quiet)
    with contextlib.ExitStack() as files:
        errors = files.enter_context(tempfile.TemporaryFile())
        process = programs.start(
            "journalctl", command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment,
            start_new_session=True,
        )  # fmt: skip
        files.enter_context(process)
        files.callback(process.kill)
        run = _Run(process, cast(BinaryIO, errors), where)
        if deadline_s is not None:
            timer = threading.Timer(deadline_s, run.stop)
            timer.daemon = True
            timer.start()
            files.callback(timer.cancel)
        yield run


# ---------------------------------------------------------------------- the export format


def parsed(stream: BinaryIO, wanted: AbstractSet[str]) -> Iterator[Entry]:
    """Each entry with those of the wanted fields that it has, the first of each; one that is cut off is left out."""
    fields: Dict[str, bytes] = {}
    for name, value in _fields(stream):
        if name == b"":
            yield Entry(fields)
            fields = {}
            continue
        key = name.decode("latin-1")
        kept = b"".join(value) if key in wanted and key not in fields and len(fields) < _MOST_FIELDS else None
        if kept is not None:
            fields[key] = kept


def _field(stream: BinaryIO, wanted: bytes) -> Iterator[bytes]:
    """The first field of that name in the first entry, in pieces."""
    for name, value in _fields(stream, whole=wanted):
        if name == b"":
            return
        if name == wanted:
            yield from value
            return


def _fields(stream: BinaryIO, whole: bytes = b"") -> Iterator[Tuple[bytes, Iterator[bytes]]]:
    """(name, its value in pieces) of every field, (b"", nothing) after the last of each entry. A value is cut to what is
    kept, but for the field ``whole``."""
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
            while line and not line.endswith(b"\n"):  # the rest of a long one
                line = stream.readline(_PIECE)
            continue
        size = int.from_bytes(stream.read(8), "little")
        name = name.rstrip(b"\n")
        left = _Left(stream, size)
        yield name, left.pieces(size if name == whole else _LONGEST)
        left.skip()
        stream.read(1)  # the newline behind it


class _Left:
    """A binary value in the stream, of which less or nothing may be taken."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._size = stream, size

    def pieces(self, most: int) -> Iterator[bytes]:
        while self._size and most > 0:
            piece = self._stream.read(min(_PIECE, self._size, most))
            if not piece:
                self._size = 0
                return
            self._size -= len(piece)
            most -= len(piece)
            yield piece

    def skip(self) -> None:
        for _piece in self.pieces(self._size):
            pass
