"""What a store of cores noted, in the evidence of its core."""

from __future__ import annotations

from pathlib import Path

import pytest

from postmortem.cores.store import Stored
from postmortem.errors import NotACore
from postmortem.evidence import Evidence, Gap, Origin, Process, Trigger
from postmortem.extract.assemble.origins import errors_named, name_in_store, with_origin
from postmortem.report.phrases.gaps import in_words

ORIGIN = Origin("systemd", None, 4711, "python3", "SIGABRT")
PATH = Path("/proc/1/fd/9")


def stored(*gaps: Gap) -> Stored:
    argv = ("python3", "-c", "import os; os.abort()")
    return Stored(PATH, "coredumpctl:last", ORIGIN, argv, "/usr/bin/python3.11", None, gaps)


def test_what_the_core_does_not_tell() -> None:
    """The command line whole, the signal, the executable; the pid of the core stays, which may be a container's."""
    found = Evidence(Trigger("core"), (Process(7, argv=("python3", "-c", "impor")),))
    told = with_origin(found, stored())
    (process,) = told.processes
    assert (told.origin, told.trigger.signal) == (ORIGIN, "SIGABRT")
    assert (process.pid, process.argv, process.exe) == (7, stored().argv, "/usr/bin/python3.11")


def test_what_the_core_tells_better() -> None:
    """Its own signal and executable count; a command line that the store does not know is left."""
    found = Evidence(Trigger("core", None, "SIGSEGV"), (Process(7, argv=("a",), exe="/opt/a"),))
    told = with_origin(found, stored()._replace(argv=()))
    assert told.trigger.signal == "SIGSEGV"
    assert (told.processes[0].argv, told.processes[0].exe) == (("a",), "/opt/a")


def test_gaps_are_about_what_the_user_named() -> None:
    """No path of ours; what systemd cut is told once, with its remedy."""
    ours = Gap(
        "core", "coredumpctl:last", "cut short by systemd: it was larger than ProcessSizeMax", code="core-cut-short"
    )
    found = Evidence(
        Trigger("core"),
        (),
        (
            Gap("core", str(PATH), "the file ends before its segments do: it was cut short", code="core-cut-short"),
            Gap("gdb", "x", "{path}: bad", code="no-native-stacks", slots={"path": str(PATH)}),
        ),
    )
    kept = with_origin(found, stored(ours)).gaps
    assert kept[0] == ours and [in_words(gap).reason for gap in kept[1:]] == ["coredumpctl:last: bad"]
    assert [gap.subject for gap in with_origin(found, stored()).gaps] == ["coredumpctl:last", "x"]


def test_names_below_a_container_s_root() -> None:
    """As they are inside; a descriptor whose number begins alike is another one."""
    root = Path("/proc/1/fd/8")
    gaps = Gap("core", f"{root}/usr/lib/x.so"), Gap("core", "/proc/1/fd/88/b"), Gap("core", "/proc/1/fd/99")
    found = Evidence(Trigger("core"), (Process(7, exe=f"{root}/usr/bin/python3"),), gaps)
    told = with_origin(found, stored()._replace(root=root))
    assert told.processes[0].exe == "/usr/bin/python3"
    assert [gap.subject for gap in told.gaps] == ["/usr/lib/x.so", "/proc/1/fd/88/b", "/proc/1/fd/99"]


def test_errors_too() -> None:
    """An error keeps its type and its next step, and names the source instead of the file."""
    with pytest.raises(NotACore) as raised, errors_named(name_in_store(stored())):
        raise NotACore("{path} is not a core file", "name another", PATH)
    assert raised.value.sentence() == "coredumpctl:last is not a core file; name another"
