"""File names relative to the root of the sources.

A forge shows an annotation at a line only if the file's name is relative to the root of the repository. That root is
the checkout in which the command ran, if the capture detected one, else its working directory.
"""

from __future__ import annotations

import posixpath
from typing import Optional
from urllib.parse import quote

from ...evidence import Evidence, Process


def root(evidence: Evidence) -> Optional[str]:
    """Return the directory that names are relative to, absolute and without a final slash; None if unknown."""
    first = next(iter(evidence.processes), None)
    found = evidence.checkout or (first.cwd if first is not None else None)
    return posixpath.normpath(found) if found and found.startswith("/") and found != "/" else None


def is_file(name: str) -> bool:
    """Return whether a frame's file name is a file's, not ``<string>`` or the like."""
    return bool(name) and not (name.startswith("<") and name.endswith(">"))


def absolute(name: str, process: Optional[Process]) -> str:
    """Return an absolute name, or the name unchanged if its base directory is unknown."""
    if name.startswith("/"):
        return posixpath.normpath(name)
    base = (process.directory or process.cwd) if process is not None else None
    return posixpath.normpath(posixpath.join(base, name)) if base else name


def below(name: str, top: Optional[str]) -> Optional[str]:
    """Return the name relative to ``top``; None if it lies elsewhere."""
    if top is not None and name.startswith(f"{top}/"):
        return name[len(top) + 1 :]
    return None


def uri(name: str) -> str:
    """Return ``file:///a%20b`` for an absolute name, else a relative reference.

    Bytes that are not UTF-8 appear as their escapes.
    """
    path = quote(name.encode("utf-8", "backslashreplace"), safe="/~")
    if name.startswith("/"):
        return f"file://{path}"
    return path if path != "" else "."
