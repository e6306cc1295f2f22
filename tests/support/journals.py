"""A fake journalctl: it prints entries in the export format, whatever these hold, and notes how it was called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, List, Sequence, Union

Fields = Dict[str, Union[bytes, str, int]]


def export(entries: Sequence[Fields]) -> bytes:
    """As JOURNAL_EXPORT_FORMATS says: what is no plain text comes with its length."""
    return b"".join(b"".join(map(_field, entry, entry.values())) + b"\n" for entry in entries)


def _field(name: str, value: Union[bytes, str, int]) -> bytes:
    data = value if isinstance(value, bytes) else str(value).encode()
    if b"\n" in data or b"\0" in data or any(byte > 127 for byte in data):
        return name.encode() + b"\n" + len(data).to_bytes(8, "little") + data + b"\n"
    return name.encode() + b"=" + data + b"\n"


_SLICE, _SERVICE = "system-systemd\\x2dcoredump.slice", "systemd-coredump@3-4711-0.service"


def forged(pid: int, **fields: Union[bytes, str, int]) -> Fields:
    """The same message, written by a user's own program."""
    theirs: Fields = {
        "_EXE": "/usr/bin/python3.11",
        "_COMM": "python3",
        "_SYSTEMD_CGROUP": "/user.slice/user-1001.slice/session-7.scope",
        "_SYSTEMD_UNIT": "session-7.scope",
        "_SYSTEMD_SLICE": "user-1001.slice",
        "_UID": 1001,
    }
    return crashed(pid, **{**theirs, **fields})


def crashed(pid: int, **fields: Union[bytes, str, int]) -> Fields:
    """An entry as systemd-coredump writes it, with what journald adds to it."""
    made: Fields = {
        "__CURSOR": f"s=1;i={pid}",
        "__REALTIME_TIMESTAMP": 1_700_000_000_000_000,
        "COREDUMP_PID": pid,
        "COREDUMP_COMM": "python3",
        "COREDUMP_EXE": "/usr/bin/python3.11",
        "COREDUMP_SIGNAL": 11,
        "COREDUMP_TIMESTAMP": 1_700_000_000_000_000 + pid * 1_000_000,
        "COREDUMP_CMDLINE": "python3 tide.py",
        "COREDUMP_UID": 1000,
        "_HOSTNAME": "ada",
        "_TRANSPORT": "journal",
        "_UID": 1000,
        "_COMM": "systemd-coredum",
        "_EXE": "/usr/lib/systemd/systemd-coredump",
        "_SYSTEMD_CGROUP": f"/system.slice/{_SLICE}/{_SERVICE}",
        "_SYSTEMD_UNIT": _SERVICE,
        "_SYSTEMD_SLICE": _SLICE,
    }
    made.update(fields)
    return {name: value for name, value in made.items() if value != ""}


class FakeJournal:
    """``entries``, the newest first, are what it lists; ``core`` what it has of the core that is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "bin"
        self.folder.mkdir()
        self._write("list", b"")
        self._write("core", b"")
        self._write("said", b"")
        self.status = 0
        self._script()

    def _script(self) -> None:
        script = self.folder / "journalctl"
        script.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" > {self.folder}/called\n/bin/cat {self.folder}/said >&2\n'
            f'case "$*" in *--cursor*) /bin/cat {self.folder}/core;; *) /bin/cat {self.folder}/list;; esac\n'
            f"exit {self.status}\n"
        )
        script.chmod(0o755)

    def _write(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)

    def lists(self, *entries: Fields) -> None:
        self._write("list", export(entries))

    def lists_bytes(self, data: bytes) -> None:
        self._write("list", data)

    def holds(self, core: bytes) -> None:
        self._write("core", export([{"__CURSOR": "s=1", "COREDUMP": core + b"\0"[: not core.count(0)]}]))

    def fails(self, sentence: str, status: int = 1) -> None:
        """It says something on stderr, and ends so."""
        self._write("said", sentence.encode() + b"\n")
        self.status = status
        self._script()

    @property
    def called(self) -> List[str]:
        return (self.folder / "called").read_text().splitlines()

    @property
    def path(self) -> str:
        return f"{self.folder}{os.pathsep}{os.environ['PATH']}"
