"""The core inside one of Ubuntu's crash reports (``/var/crash/*.crash``).

Format: ``Key: value`` lines, whose continuation lines begin with a space. A binary value is ``Key: base64``; each
of its continuation lines is base64 of one piece of a gzip stream (since 2.28 also zstd). The core is extracted
line by line into an unnamed file; ``ProcEnviron`` is never kept.

Source: apport's problem_report.py (2.20 to 2.33), ProblemReport.write.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import re
import time
from pathlib import Path
from typing import BinaryIO, Dict, Iterator, List, Optional, cast

from ..errors import CoreGone, NotACore, PermissionRefused
from ..evidence import Gap, Origin
from ..foreign.files import Unfit, open_regular, pieces
from .store import Nothing, Stored, signal_name, something, whose, words
from .unpacked import spooled

SUFFIX = ".crash"
_KEPT = ("ProblemType", "ExecutablePath", "ProcCmdline", "Signal", "Date", "Traceback")
_KEY = re.compile(rb"([A-Za-z0-9._-]{1,100}):[ \n]")
#: Bytes of a line: apport compresses a megabyte at a time; incompressible data grow by a third in base64.
_LONGEST_LINE = 16 << 20
_LONGEST_VALUE = 4 << 10


def is_report(path: Path) -> bool:
    """Return whether a file begins like apport's reports."""
    try:
        descriptor = open_regular(str(path))
    except (FileNotFoundError, IsADirectoryError):
        return False
    except (OSError, ValueError):
        return path.suffix == SUFFIX
    try:
        head = b"".join(pieces(descriptor, 200))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return (path.suffix == SUFFIX and _KEY.match(head) is not None) or head.startswith(b"ProblemType:")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Stored]:
    """Open the core inside, for the duration of the block.

    Raises CoreGone for a report without a core, NotACore, PermissionRefused.
    """
    try:
        descriptor = open_regular(str(path))
    except PermissionError:
        raise PermissionRefused(f"{path} may not be read by this user", "run as root, or as the crash's user") from None
    except Unfit as exc:
        raise NotACore(f"{path} {exc.strerror}", "name the report itself") from None
    except OSError as exc:
        raise NotACore(f"{path} cannot be read: {exc.strerror}", "check the path") from None
    with contextlib.ExitStack() as files:
        report = _Report(cast(BinaryIO, files.enter_context(open(descriptor, "rb"))), str(path))
        core: Optional[Path] = None
        if report.to_core():
            with contextlib.suppress(Nothing):
                core = files.enter_context(spooled(something(report.core()), str(path), core=False))
        report.to_end()
        origin = _origin(path, report.values)
        if core is None:
            raise _without_core(path, origin, report.values)
        gaps = [Gap("core", str(path), reason, code="report-damaged") for reason in report.damage]
        exe = report.values.get("ExecutablePath")
        argv, owner = words(report.values.get("ProcCmdline")), os.fstat(descriptor).st_uid
        yield Stored(core, str(path), origin, argv, exe, None, tuple(gaps), owner or None)


class _Report:
    """A report that is read once from beginning to end; ``values`` are the useful fields read so far."""

    def __init__(self, stream: BinaryIO, named: str) -> None:
        self._stream, self._named, self._line = stream, named, b""
        self.values: Dict[str, str] = {}
        self.damage: List[str] = []
        self._advance()

    def _advance(self) -> None:
        self._line = self._stream.readline(_LONGEST_LINE)
        if len(self._line) == _LONGEST_LINE and not self._line.endswith(b"\n"):
            raise NotACore(
                f"{self._named} has a line of more than {_LONGEST_LINE >> 20} MB", "it is not a crash report"
            )

    def to_core(self) -> bool:
        """Read up to the core; return False when there is none."""
        while self._line:
            if self._line.startswith(b"CoreDump:"):
                self._advance()
                return True
            self._field()
        return False

    def to_end(self) -> None:
        """Read the remaining fields."""
        while self._line:
            self._field()

    def core(self) -> Iterator[bytes]:
        """Yield the compressed core; stop where it is damaged, with a reason in ``damage``."""
        while self._line.startswith(b" "):
            text = self._line.strip()
            if not self._line.endswith(b"\n"):
                self.damage.append("the report ends in the middle of the core")
                text = text[: len(text) // 4 * 4]
            try:
                piece = base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError) as exc:
                self.damage.append(f"the core's text in the report is damaged: {exc}")
                return
            if piece:
                yield piece
            self._advance()

    def _field(self) -> None:
        """Read one field with its continuation lines."""
        found = _KEY.match(self._line)
        name = found[1].decode("ascii") if found else ""
        kept = [self._line[found.end() :]] if found and name in _KEPT else []
        self._advance()
        while self._line.startswith(b" "):
            if kept and sum(map(len, kept)) < _LONGEST_VALUE:
                kept.append(self._line[1:])
            self._advance()
        if kept:
            self.values.setdefault(name, b"".join(kept)[:_LONGEST_VALUE].decode("utf-8", "replace").strip())


def _origin(path: Path, values: Dict[str, str]) -> Origin:
    exe, number = values.get("ExecutablePath"), values.get("Signal", "")
    return Origin(
        store="apport",
        core=str(path),
        command=Path(exe).name if exe else None,
        signal=signal_name(int(number)) if re.fullmatch(r"\d{1,3}", number) else None,
        time=_moment(values.get("Date", "")),
    )


def _moment(text: str) -> Optional[float]:
    """Return the seconds since the epoch of a time in ctime(3)'s format, which is assumed to be local to this machine."""
    try:
        return time.mktime(time.strptime(text, "%a %b %d %H:%M:%S %Y"))
    except (ValueError, OverflowError):
        return None


def _without_core(path: Path, origin: Origin, values: Dict[str, str]) -> CoreGone:
    if "Traceback" in values:
        return CoreGone(
            f"{path} is about an uncaught Python exception: it holds a traceback and no core",
            "`apport-unpack` shows its Traceback; it has no waiting threads to diagnose",
        )
    return CoreGone(
        f"{path} holds no core: {whose(origin)} was too large, or was removed when the report was sent",
        "raise the limit on core size, or take the core before it is sent",
    )
