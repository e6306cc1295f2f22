"""Reasons why no interpreter was found, judged by the mapped files, and remedies."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Sequence, Tuple

from ...memory import Image
from .candidates import Candidate, is_of_python
from .debugoffsets import Garbage, read
from .releases import LAYOUTS

#: Libraries and programs of other implementations → their names.
_OTHERS = (
    (re.compile(r"(?:^|/)(?:lib)?pypy\d*(?:\.\d+)?(?:-c)?[^/]*$"), "PyPy"),
    (re.compile(r"(?:^|/)(?:graalpy[^/]*|libpythonvm\.[^/]*)$"), "GraalPy"),
)
#: Any version, unlike is_of_python: 2.7 deserves an explanation, too.
_VERSION = re.compile(r"(?:^|/)(?:lib)?python(\d)\.(\d+)")
_MOST = 5

_FILES = "pass --exe or --sysroot with the files of the machine that ran it"
_OLDER = "py-spy dump --pid PID reads older versions while they run"
_NEWER = "look for a newer release of postmortem"
_STARTED = "if it was starting, capture it again later; if it was ending, or never used Python, only native stacks can be shown"
_OTHER = "only native stacks can be shown; for Python stacks, let faulthandler.dump_traceback_later() write them"


class Absence(NamedTuple):
    """A reason why no interpreter was found."""

    reason: str
    python_file: Optional[str]  # mapped file that suggests an interpreter
    remedy: Optional[str]


def explain(image: Image, doubted: Sequence[Candidate]) -> Absence:
    """Explain why no interpreter was found.

    ``doubted``: candidates that files named, and that failed the checks.
    """
    suspect = next((file.path for file in image.files if _VERSION.search(file.path)), None)
    reasons = [_doubt(image, candidate) for candidate in doubted]
    if not reasons:
        reasons = _by_names([file.path for file in image.files])
    if not reasons:
        return Absence("no Python interpreter is mapped", None, None)
    texts = list(dict.fromkeys(text for text, _file, _remedy in reasons))
    return Absence("; ".join(texts[:_MOST]), suspect or reasons[0][1], reasons[0][2])


_Reason = Tuple[str, str, str]  # (text, file that it is about, remedy)


def _by_names(paths: Sequence[str]) -> List[_Reason]:
    """Explain by file names alone: other implementations, unsupported versions, missing files."""
    for path in paths:
        for pattern, name in _OTHERS:
            if pattern.search(path):
                return [(f"{path}: this is {name}, but only CPython can be read", path, _OTHER)]
    for path in paths:
        version = _version(path)
        if version is not None and version not in LAYOUTS:
            return [_unread(path, version)]
    suspect = next((path for path in paths if is_of_python(path)), None)
    return [(f"{suspect}: it has no _PyRuntime, or the file is missing here", suspect, _FILES)] if suspect else []


def _version(path: str) -> Optional[Tuple[int, int]]:
    match = _VERSION.search(path)
    return (int(match[1]), int(match[2])) if match else None


def _unread(where: str, version: Tuple[int, int]) -> _Reason:
    """Explain that a version is not supported."""
    (first, last), said = (min(LAYOUTS), max(LAYOUTS)), "this is CPython {}.{}".format(*version)
    bounds = "{}.{} to {}.{} can be read".format(*first, *last)
    return f"{where}: {said}, but only {bounds}", where, _OLDER if version < first else _NEWER


def _doubt(image: Image, candidate: Candidate) -> _Reason:
    """Explain why a candidate failed the checks."""
    where, version = candidate.path or f"{candidate.address:#x}", candidate.version
    try:
        account = read(image, candidate.address)
    except Garbage as exc:
        return f"{where}: {exc}", where, _FILES
    if version is not None and version[:2] not in LAYOUTS and account is None:
        return _unread(where, version[:2])
    return f"{where}: _PyRuntime leads to no thread state (not initialised, or its page missing)", where, _STARTED
