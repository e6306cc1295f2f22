"""The gate between what was read and what is shown."""

from __future__ import annotations

from postmortem.evidence import (
    Evidence,
    Gap,
    HeldLock,
    Local,
    Process,
    PythonFrame,
    Resource,
    Thread,
    ThreadException,
    Trigger,
    decode,
    encode,
    fact,
)
from postmortem.redaction.evidence import discreet, has_locals, without_locals

SECRET = "hunter2x"


def evidence() -> Evidence:
    """With the secret wherever there is text of the program's, and a variable that no name gives away."""
    frame = PythonFrame("/srv/app.py", 3, "run", locals=(Local("x", "str", f"'{SECRET}'"), Local("y", "int", "3")))
    thread = Thread(
        7,
        name=f"upload-{SECRET}",
        stack=(frame,),
        holds=(HeldLock("lock-1", frame, 0, "recorded"),),
        exceptions=(ThreadException("handled", "ValueError", message=f"{SECRET} is wrong"),),
    )
    process = Process(
        7,
        argv=("python3", "app.py", "--token", SECRET),
        threads=(thread,),
        resources=(Resource("lock-1", "lock", f"Lock of password={SECRET}", steps=(f"as {SECRET} says",)),),
    )
    gap = Gap("core", "it", f"cannot open https://ann:{SECRET}@host", f"try {SECRET}")
    sources = {"/srv/app.py": {2: f'password = "{SECRET}"', 3: "run()"}}
    return Evidence(Trigger("core"), processes=(process,), gaps=(gap,), sources=sources)


def test_a_secret_of_a_command_line_is_one_everywhere() -> None:
    """It goes from texts of any depth; twice is as good as once, and old evidence reads as new one."""
    shown = discreet(evidence())
    assert SECRET.encode() not in encode(shown)
    assert shown.processes[0].argv == ("python3", "app.py", "--token", "<redacted>")
    assert shown.processes[0].threads[0].name == "upload-<redacted>"
    assert shown.sources["/srv/app.py"] == {2: 'password = "********"', 3: "run()"}
    assert encode(discreet(decode(encode(shown)))) == encode(shown)


def test_slots_of_facts_and_gaps_are_texts_too() -> None:
    """What goes into a template is masked before it, wherever it stands."""
    held = fact("other-end", process=f"PID 3 (serve --token {SECRET})", fd=4)
    process = Process(
        1, argv=("python3", "--token", SECRET), resources=(Resource("p", "pipe", "a pipe", because=(held,)),)
    )
    gap = Gap.of("core", "it", "container-files", container=f"box-{SECRET}")
    shown = discreet(Evidence(Trigger("core"), processes=(process,), gaps=(gap,)))
    assert SECRET.encode() not in encode(shown)
    assert shown.gaps[0].slots == {"container": "box-<redacted>"}


def test_evidence_without_secrets_is_not_copied() -> None:
    """Thousands of threads are walked in milliseconds, and stay the objects that they are."""
    plain = Evidence(Trigger("core"), processes=(Process(1, argv=("python3", "app.py"), threads=(Thread(1),)),))
    assert discreet(plain) is plain


def test_ordinary_words_stay_elsewhere() -> None:
    """`--auth basic` masks its word, and no other `basic`."""
    process = Process(1, argv=("serve", "--auth", "basic"), threads=(Thread(1, name="basic auth"),))
    shown = discreet(Evidence(Trigger("core"), processes=(process,)))
    assert shown.processes[0].argv == ("serve", "--auth", "<redacted>")
    assert shown.processes[0].threads[0].name == "basic auth"


def test_without_locals_no_frame_has_any() -> None:
    """Not even one that a lock refers to; messages of exceptions are gone as well."""
    bare = without_locals(evidence())
    assert has_locals(evidence())
    assert not has_locals(bare)
    assert b'"locals": [' not in encode(bare)
    assert bare.processes[0].threads[0].exceptions == (ThreadException("handled", "ValueError"),)
