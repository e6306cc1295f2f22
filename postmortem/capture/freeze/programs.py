"""Copies of executables that were replaced or deleted while they run.

The kernel keeps such a file as /proc/PID/exe until its last process ends. Neither native stacks nor symbols can be read
from a core without it, so the bundle takes a copy.
"""

from __future__ import annotations

import os
from typing import Dict, Tuple

from ...bundle import Bundle
from ...foreign.files import open_regular, pieces
from ...foreign.kinds import may_block
from ..procfs import parsers

#: Bytes up to which an executable is copied: larger ones are not python; Debian's has 7 MB.
LARGEST = 64 << 20
_DELETED = " (deleted)"


class LostPrograms:
    """The deleted executables kept by one capture; processes of one program share one copy."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._kept: Dict[Tuple[int, int], str] = {}  # (device, inode) → name in the bundle

    def keep(self, pid: int) -> None:
        """Copy the executable of a process if its file was deleted. Raises OSError."""
        link = f"/proc/{pid}/task/{parsers.living_thread(pid)}/exe"
        if not os.readlink(link).endswith(_DELETED):
            return
        name = f"raw/exe/{pid}"
        descriptor = open_regular(link)
        try:
            status = os.fstat(descriptor)
            if status.st_size > LARGEST or may_block(descriptor):
                return
            first = self._kept.setdefault((status.st_dev, status.st_ino), name)
            if first != name:
                self._bundle.folder.link(first, name)
                return
            with self._bundle.writing(name) as copy:
                for piece in pieces(descriptor, status.st_size):
                    copy.write(piece)
        finally:
            os.close(descriptor)
