"""What holds for every pattern, and for the engine: documentation, silence, JSON, signatures."""

from __future__ import annotations

from postmortem.classify.engine import all_patterns, classify
from postmortem.classify.pattern import ANYTHING
from postmortem.evidence import decode, encode

from .make import (
    APP,
    evidence,
    found,
    process,
    thread,
)
from .test_gil import polling
from .test_locks import two_locks


def test_every_pattern_is_documented() -> None:
    """A title, an explanation, a remedy, and a page that says what it looks like and what it is mistaken for."""
    for rule in all_patterns():
        pattern = rule.pattern
        assert pattern.title and pattern.explanation and pattern.remedy
        assert (
            "**What it looks like.**" in rule.doc
            and "**Easily mistaken for**" in rule.doc
            and "**Remedy.**" in rule.doc
        )
        assert set(pattern.outranks) <= {*ANYTHING, *(r.id for r in all_patterns())} - {pattern.id}


def test_nothing_known_gives_no_finding() -> None:
    """Evidence without stacks, counters or waits yields silence, whatever else is in it."""
    for known in (
        evidence(),
        evidence(process([])),
        evidence(process([thread(1)]), window=None),
        evidence(process([thread(1)], gil=None)),
    ):
        assert found(known) == {}


def test_evidence_survives_json() -> None:
    """What is written is what is read back, and gives the same diagnosis."""
    known = evidence(two_locks(), polling(5, 9000, 9000, 1.0))
    assert decode(encode(known)) == known and classify(decode(encode(known))) == classify(known)


def test_the_signature_outlives_ids_lines_and_folders() -> None:
    """Other thread ids, shifted lines, another checkout: the same; another function to change: another one."""
    first = evidence(two_locks())
    text = encode(first).decode().replace(APP, "/elsewhere/service.py").replace('"line": 11', '"line": 111')
    assert classify(decode(text.encode())).signature == classify(first).signature
    assert (
        classify(decode(text.replace('"function": "one"', '"function": "uno"').encode())).signature
        != classify(first).signature
    )
