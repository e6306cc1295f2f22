"""Evidence of the first version is read as this version's, with the same words for the same waits."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

import pytest

from postmortem.evidence import SCHEMA, Wait, decode, encode


def first(wait: Optional[Dict[str, Any]] = None, **more: Any) -> bytes:
    """Evidence of version 1 with one thread."""
    process = {"pid": 1, "threads": [{"tid": 1, "wait": wait}], **more}
    return json.dumps(
        {"schema": "postmortem.evidence/1", "trigger": {"kind": "timeout"}, "processes": [process]}
    ).encode()


@pytest.mark.parametrize(
    ("wait", "verb", "detail"),
    [
        ({"kind": "file", "detail": "waits for a lock on a file"}, "waits", "for a lock on a file"),
        ({"kind": "gil", "detail": "wants the interpreter lock (GIL)"}, "wants", "the interpreter lock (GIL)"),
        (
            {"kind": "file", "detail": "asks every 0.1 s for a lock on a file"},
            "asks",
            "every 0.1 s for a lock on a file",
        ),
        ({"kind": "pipe", "syscall": "read", "fd": 3, "detail": "read on pipe (descriptor 3)"}, "call", "pipe"),
        (
            {"kind": "socket", "syscall": "recvfrom", "fd": 5, "detail": "recvfrom on socket a:1 → b:2 (descriptor 5)"},
            "call",
            "socket a:1 → b:2",
        ),
        ({"kind": "other", "syscall": "read", "fd": 7, "detail": "read on descriptor 7"}, "call", None),
        ({"kind": "semaphore", "detail": "a semaphore that processes share"}, None, "a semaphore that processes share"),
        ({"kind": "pipe", "syscall": "write", "fd": 3, "detail": "read on pipe (descriptor 3)"}, None, None),
        ({"kind": "lock"}, None, None),
    ],
)
def test_a_phrase_becomes_a_verb_and_what_follows(wait: Dict[str, Any], verb: str, detail: str) -> None:
    """Verb and rest; put together they say what was written. What is no such phrase stays whole."""
    found = decode(first(wait)).processes[0].threads[0].wait
    assert found is not None and found.verb == verb and found.phrase == wait.get("detail")
    assert verb is None or found.detail == detail


def test_an_import_lock_names_its_module() -> None:
    """From its description; a module that was not known is not called anything."""
    resources = [
        {"id": f"import-{number}", "kind": "import-lock", "description": f"import of module {module}"}
        for number, module in enumerate(("app.models", "?"))
    ]
    found = decode(first(resources=resources)).processes[0].resources
    assert [resource.module for resource in found] == ["app.models", None]


def test_what_was_read_is_written_as_this_version() -> None:
    """And reads the same again."""
    found = decode(first({"kind": "file", "detail": "waits for a lock on a file"}))
    assert found.schema == SCHEMA and decode(encode(found)) == found
    assert found.processes[0].threads[0].wait == Wait("file", verb="waits", detail="for a lock on a file")


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"schema": "postmortem.evidence/1"}',
        b'{"schema": "postmortem.evidence/1", "trigger": {"kind": "pid"}, "processes": 7}',
        b'{"schema": "postmortem.evidence/1", "trigger": {"kind": "pid"}, "processes": [7, {"threads": [null, {"wait": 3}]}]}',
        b'{"schema": "postmortem.evidence/1", "processes": [{"pid": 1, "resources": [{"kind": "import-lock"}, []]}]}',
    ],
)
def test_damage_is_refused_as_ever(damaged: bytes) -> None:
    """One sentence, whichever part has another shape."""
    with pytest.raises(ValueError, match=r"not readable as postmortem\.evidence"):
        decode(damaged)
