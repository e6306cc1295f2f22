"""Whose a source file is, by its path: the program's, an installed package's, the standard library's."""

from __future__ import annotations

_PACKAGES = ("/site-packages/", "/dist-packages/")
#: Where CPython is installed (sysconfig's "posix_prefix" and Fedora's), and what is frozen into it.
_PREFIXES = ("/lib/python3.", "/lib64/python3.", "<frozen ")


def is_program(file: str) -> bool:
    """Neither the standard library's nor an installed package's."""
    return not any(part in file for part in (*_PACKAGES, *_PREFIXES))


def is_stdlib(file: str) -> bool:
    return not any(part in file for part in _PACKAGES) and any(part in file for part in _PREFIXES)
