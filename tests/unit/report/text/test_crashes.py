"""What reports say of a crash."""

from __future__ import annotations

import json
from typing import List, Optional

import jsonschema
import pytest

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.report.machine import json_report
from postmortem.report.text import crashes, textreport
from postmortem.report.text.page import Page

SCHEMA = json.loads(json_report.schema())


def process(crash: Optional[ev.Crash], ended: int = 11) -> ev.Process:
    return ev.Process(
        7, argv=("python",), threads=(ev.Thread(7, "MainThread", is_main=True),), fatal_signal=ended, crash=crash
    )


def said(crash: Optional[ev.Crash], ended: int = 11) -> List[str]:
    page = Page(600, False)
    crashes.show(page, process(crash, ended), 0)
    return str(page).splitlines()


def test_a_fault_says_what_was_done_to_which_address_and_where() -> None:
    """Signal, code, thread; then the function, its file, the instruction."""
    crash = ev.Crash(
        11,
        1,
        "SEGV_MAPERR",
        8,
        tid=7,
        pc=0x4010,
        access="read",
        instruction="mov (%rdi),%rax",
        module="/usr/lib/libc.so.6",
        function="strlen",
    )
    assert said(crash) == [
        'Crash: SIGSEGV (SEGV_MAPERR) in thread 7 "MainThread": it read from address 0x8, where nothing is mapped.',
        "At strlen of libc.so.6: mov (%rdi),%rax",
    ]


@pytest.mark.parametrize(
    ("crash", "words"),
    [
        (ev.Crash(6, -6, "SI_TKILL", sender_pid=7, tid=7), ", sent by the process itself."),
        (ev.Crash(6, 0, "SI_USER", sender_pid=9, sender_uid=33, tid=7), ", sent by process 9 of user 33."),
        (ev.Crash(6, 0, "SI_USER", sender_pid=0, sender_uid=0, tid=7), "outside its pid namespace."),
        (ev.Crash(8, 1, "FPE_INTDIV", tid=7), ": an integer was divided by zero"),
        (ev.Crash(11, 128, "SI_KERNEL", tid=7), ": an address that no program can use, or misaligned data."),
        (ev.Crash(11, 1, "SEGV_MAPERR", 8, access="execute", tid=7, pc=8), "it jumped to address 0x8"),
        (ev.Crash(11), "Crash: SIGSEGV in an unknown thread."),
        (ev.Crash(60, tid=7), "Crash: SIGRTMIN+26 in"),
    ],
)
def test_other_signals(crash: ev.Crash, words: str) -> None:
    """The sender of the signal, or what went wrong, is named as far as it is known."""
    assert words in said(crash)[0]


def test_what_was_said_before_is_quoted() -> None:
    """The C library's and Python's message, and how the latter is known; a long one is cut."""
    crash = ev.Crash(
        6,
        message="free(): invalid pointer",
        python_error="no GIL" + "!" * 900,
        python_error_function="PyThing",
        python_error_basis="inferred",
    )
    c_library, python = said(crash)[1:]
    assert c_library == 'The C library said: "free(): invalid pointer".'
    assert python.startswith('Python said: "Fatal Python error: PyThing: no GIL!!!')
    assert "found among the texts" in python
    assert len(python) < 450


def test_an_overflow_and_a_handler_are_told() -> None:
    """How much of the stack is used; that the signal which ended the process came later."""
    crash = ev.Crash(
        11, 1, "SEGV_MAPERR", 0x7000, stack="guard", stack_used=8_388_624, stack_limit=8_388_608, handler=True
    )
    handler, stack = said(crash, 6)[1:]
    assert handler == "The program's own signal handler ran first; SIGABRT then ended the process."
    assert stack == (
        "The address lies beyond the end of the thread's stack, of which 8,388,624 of 8,388,608 bytes are used."
    )
    assert "the same signal" in said(crash, 11)[1]


def test_names_print_as_text() -> None:
    """What a library or a message is called comes from the core."""
    bad = "a\x1b[2J\nVerdict: fine\r\u202e"
    crash = ev.Crash(6, module=bad, function=bad, pc=1, instruction=bad, message=bad, python_error=bad)
    shown = "\n".join(said(crash))
    assert "\x1b" not in shown and "\r" not in shown and "\u202e" not in shown
    assert not any(line.startswith("Verdict") for line in shown.splitlines())


def test_both_reports_have_it() -> None:
    """JSON follows the schema with every field, the text shows it under the process; no crash is null, and silence."""
    crash = ev.Crash(11, 1, "SEGV_MAPERR", 8, "recorded", tid=7, pc=1, access="read", stack="inside", handler=False)
    diagnosis = fi.Diagnosis(None, "s")
    for found in (crash, None):
        evidence = ev.Evidence(ev.Trigger("core", None, "SIGSEGV"), (process(found),))
        report = json.loads(json_report.render(evidence, diagnosis))
        jsonschema.Draft202012Validator(SCHEMA).validate(report)
        shown = report["processes"][0]["crash"]
        assert (shown is None) == (found is None)
        assert ("Crash: SIGSEGV" in textreport.render(evidence, diagnosis, color=False)) == (found is not None)
    assert set(SCHEMA["$defs"]["crash"]["properties"]) == set(ev.Crash.__struct_fields__)
    assert ev.decode(ev.encode(ev.Evidence(ev.Trigger("core"), (process(crash),)))).processes[0].crash == crash
