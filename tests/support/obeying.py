"""CI runners as far as they obey lines of a log: which of them would obey what. Written from their documentation, not from
what is under test (`postmortem.runners` cites it).
"""

from __future__ import annotations

from typing import List

#: One of each.
ORDERS = (
    "##vso[task.setvariable variable=x]y", "##[error]x", "##[group]x", "##teamcity[buildStop comment='x']", "::error file=a::x",
    "::set-output name=x::y", "::stop-commands::x", "section_start:1560896352:x", "section_end:1560896352:x",
    "travis_fold:start:x", "travis_time:start:x", "--- x", "+++ x", "~~~ x", "^^^ +++",
)  # fmt: skip


def obeyed(text: str) -> List[str]:
    """The lines that some runner obeys."""
    return [line for line in text.split("\n") if _azure(line) or _github(line) or _folds(line)]


def _azure(line: str) -> bool:
    """And TeamCity, which writes its messages alike."""
    low = line.lower()
    return any(mark in low for mark in ("##vso[", "##[", "##teamcity["))


def _github(line: str) -> bool:
    return line.lstrip().startswith("::")


def _folds(line: str) -> bool:
    low = line.lower()
    marks = ("section_start:", "section_end:", "travis_fold:", "travis_time:")
    words = line.split(None, 1)[:1]
    headed = not line[:1].isspace() and words in (["---"], ["+++"], ["~~~"], ["^^^"])
    return headed or any(mark in low for mark in marks)
