"""Starting a program as a shell does.

PATH is searched, a script without a ``#!`` line is given to /bin/sh, and the environment is ours.
"""

# pathlib would take half of the time before the command's start:
# ruff: noqa: PTH118

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any


def spawn(argv: list[str], mask: set[int], restored: tuple[int, ...], *, own_group: bool) -> int:
    """Start the program with this signal mask and default actions for ``restored``; return its pid. Raises OSError.

    own_group: make it the leader of a new process group.
    """
    environment = _environment()
    settings: dict[str, Any] = {"setsigmask": mask, "setsigdef": restored}
    if own_group:
        settings["setpgroup"] = 0
    try:
        return os.posix_spawnp(argv[0], argv, environment, **settings)
    except OSError as exc:
        if exc.errno != errno.ENOEXEC:
            raise
    # execvp(3) gives a script without #! to the shell; posix_spawnp does not
    script = _on_path(argv[0], environment)
    return os.posix_spawn("/bin/sh", ["sh", script, *argv[1:]], environment, **settings)


def _on_path(name: str, environment: dict[str, str]) -> str:
    if "/" not in name:
        for folder in os.get_exec_path(environment):
            candidate = os.path.join(folder, name)
            if os.access(candidate, os.X_OK):
                return candidate
    return name


def _environment() -> dict[str, str]:
    """Return the environment as we got it, without the LC_CTYPE that Python sets in the C locale (PEP 538)."""
    environment = dict(os.environ)
    if environment.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8"):
        try:
            with open("/proc/self/environ", "rb") as stream:
                given = stream.read()
        except OSError:
            return environment
        if b"LC_CTYPE=" not in given:
            del environment["LC_CTYPE"]
    return environment
