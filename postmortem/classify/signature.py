"""A short string that is the same for the same hang on another day or machine.

It is made of the pattern and of *where to change the code*: file names without their folders and functions
without line numbers, so that another checkout, another interpreter or a shifted line gives the same one.
"""

from __future__ import annotations

import hashlib
from typing import Optional

from ..evidence import Evidence
from ..findings import Finding

VERSION = "1"


def signature(evidence: Evidence, leading: Optional[Finding]) -> str:
    """``gil-thrash-1-5f3a9c0d2b71``; of an unrecognised hang, the innermost functions of its main threads."""
    if leading is not None:
        places = sorted({f"{_file(c.file)}:{c.function}" for c in leading.culprits})
        name = leading.pattern
    else:
        places = sorted({_resting_place(p.threads[0]) for p in evidence.processes if p.threads})
        name = "unknown"
    digest = hashlib.sha256("\n".join([VERSION, name, *places]).encode("utf-8", "backslashreplace")).hexdigest()
    return f"{name}-{VERSION}-{digest[:12]}"


def _file(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def _resting_place(thread: object) -> str:
    frames = getattr(thread, "python", ())[:5]
    return "<".join(f"{_file(f.file)}:{f.function}" for f in frames)
