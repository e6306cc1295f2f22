"""Files without a name: nothing remains of them, however the process that made them ends.

Sources: open(2), O_TMPFILE (Linux 3.11; not every file system has it); memfd_create(2).
"""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

_VARIABLES = ("TMPDIR", "TEMP", "TMP")
_USUAL = "/tmp", "/var/tmp"  # noqa: S108 - nothing there gets a name
_OPTIONS = os.O_RDWR | os.O_EXCL | os.O_CLOEXEC
#: Errors of a file system or kernel without O_TMPFILE.
_ABSENT = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)


def temporary_folder() -> str:
    """Return the directory for temporary files: TMPDIR, TEMP or TMP, usable or not, else /tmp or /var/tmp."""
    for variable in _VARIABLES:
        if os.environ.get(variable):
            return os.environ[variable]
    return next((folder for folder in _USUAL if os.access(folder, os.W_OK | os.X_OK)), _USUAL[0])


def unnamed(folder: str) -> int:
    """Create an empty file in a directory, mode 0600; return its descriptor for reading and writing. Raises OSError."""
    try:
        return os.open(folder, os.O_TMPFILE | _OPTIONS, 0o600)
    except OSError as exc:
        if exc.errno not in _ABSENT or not Path(folder).is_dir():
            raise
    name = f"{folder}/.{secrets.token_hex(16)}"
    descriptor = os.open(name, os.O_CREAT | os.O_NOFOLLOW | _OPTIONS, 0o600)
    Path(name).unlink()
    return descriptor
