"""Where a file of a program lies for who reads the report: relative to the folder that the work is done in.

A forge shows an annotation at a line only when the file's name is relative to the root of the repository. That root is the
checkout in which the command ran, when the capture saw one, else its working directory.
"""

from __future__ import annotations

import posixpath
from typing import Optional
from urllib.parse import quote

from ...evidence import Evidence, Process


def root(evidence: Evidence) -> Optional[str]:
    """The folder to which names are relative, absolute and without a slash at its end; None when it is not known."""
    first = next(iter(evidence.processes), None)
    found = evidence.checkout or (first.cwd if first is not None else None)
    return posixpath.normpath(found) if found and found.startswith("/") and found != "/" else None


def is_file(name: str) -> bool:
    """Frames of code without a file are called ``<string>`` and the like."""
    return bool(name) and not (name.startswith("<") and name.endswith(">"))


def absolute(name: str, process: Optional[Process]) -> str:
    """As it is, where it is not known what it is relative to."""
    if name.startswith("/"):
        return posixpath.normpath(name)
    base = (process.directory or process.cwd) if process is not None else None
    return posixpath.normpath(posixpath.join(base, name)) if base else name


def below(name: str, top: Optional[str]) -> Optional[str]:
    """The name from ``top`` on, when it lies there."""
    if top is not None and name.startswith(f"{top}/"):
        return name[len(top) + 1 :]
    return None


def uri(name: str) -> str:
    """``file:///a%20b`` of an absolute name, a relative reference of another. Bytes that are no UTF-8 are their escapes."""
    path = quote(name.encode("utf-8", "backslashreplace"), safe="/~")
    if name.startswith("/"):
        return f"file://{path}"
    return path if path != "" else "."
