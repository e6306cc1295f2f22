"""What tests need beside Python: without it they skip and name it; in CI, which has everything that `.ci/run` installs, they
fail. Interpreters are required one by one instead (POSTMORTEM_REQUIRE_PYTHONS, see tests/support/interpreters.py).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn, Optional

import pytest

from postmortem.native import find_gdb

IN_CI = bool(os.environ.get("CI"))
#: program → the Debian package that brings it, where that has another name
_PACKAGES = {
    "cc": "gcc",
    "setpriv": "util-linux",
    "stty": "coreutils",
    "top": "procps",
    "vi": "vim-tiny",
    "xz": "xz-utils",
}


def lacking(reason: str) -> NoReturn:
    """Skip the test, or in CI fail it; ``reason`` names what is missing and how to get it."""
    if IN_CI:
        pytest.fail(reason)
    pytest.skip(reason)


def needs(there: object, reason: str) -> pytest.MarkDecorator:
    """Mark tests that call ``lacking(reason)`` unless ``there`` is true."""
    return pytest.mark.needs(bool(there), reason)


def program(name: str) -> str:
    """Return the path of a program."""
    found = shutil.which(name)
    if found is None:
        lacking(_not_installed(name))
    return found


def compiler() -> str:
    """Return the path of a C compiler."""
    return shutil.which("gcc") or program("cc")


def gdb() -> Path:
    """Return the gdb that postmortem uses."""
    found = find_gdb()
    if found is None:
        lacking(_NO_GDB)
    return found


def check(marker: Optional[pytest.Mark]) -> None:
    """Skip or fail where a mark of ``needs`` says that something is missing."""
    if marker is not None and not marker.args[0]:
        lacking(marker.args[1])


def _not_installed(name: str) -> str:
    return f"{name} is not installed: apt-get install {_PACKAGES.get(name, name)}"


_NO_GDB = "gdb is not installed: apt-get install gdb, or pip install gdb-for-pwndbg"
needs_gdb = needs(find_gdb(), _NO_GDB)
