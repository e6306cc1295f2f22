"""Whose a source file is, by its path: the program's, an installed package's, or the standard library's."""

from __future__ import annotations

import functools
import re
from typing import Literal, Optional

Origin = Literal["program", "package", "stdlib"]

#: Directories of installed packages: site-packages, and Debian's dist-packages.
_PACKAGES = re.compile(r"/(?:site|dist)-packages/")
#: CPython's library directories (sysconfig's "posix_prefix" and Fedora's, "t" of free-threaded builds), its zip of them,
#: frozen modules.
_STDLIB = re.compile(r"/lib(?:64)?/python3\.\d+t?/|/python3\d+\.zip/|^<frozen ")
#: What every library's path begins with.
_COMMON = re.compile(r"^.*/(?:(?:site|dist)-packages|lib(?:64)?/python3\.\d+t?)/")


@functools.lru_cache(maxsize=8192)
def origin(file: str) -> Origin:
    """Return whose a file is; cached, because deep stacks repeat a few files."""
    return "package" if _PACKAGES.search(file) else "stdlib" if _STDLIB.search(file) else "program"


def is_program(file: str) -> bool:
    """Return whether a file belongs to neither the standard library nor an installed package."""
    return origin(file) == "program"


def is_stdlib(file: str) -> bool:
    """Return whether a file belongs to the standard library."""
    return origin(file) == "stdlib"


def package(file: str) -> Optional[str]:
    """Return the top-level name of an installed package that a file belongs to; None for other files."""
    found = _PACKAGES.search(file)
    return file[found.end() :].partition("/")[0] if found is not None else None


def short(file: str) -> str:
    """Return a path without the directories that all libraries share; a program's own file as it is."""
    return _COMMON.sub("", file)
