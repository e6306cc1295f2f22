"""Origin of a source file by its path: the program, an installed package, or the standard library."""

from __future__ import annotations

_PACKAGES = ("/site-packages/", "/dist-packages/")
#: CPython's library directories (sysconfig's "posix_prefix" and Fedora's), and frozen modules.
_PREFIXES = ("/lib/python3.", "/lib64/python3.", "<frozen ")


def is_program(file: str) -> bool:
    """Return whether a file belongs to neither the standard library nor an installed package."""
    return not any(part in file for part in (*_PACKAGES, *_PREFIXES))


def is_stdlib(file: str) -> bool:
    """Return whether a file belongs to the standard library."""
    return not any(part in file for part in _PACKAGES) and any(part in file for part in _PREFIXES)
