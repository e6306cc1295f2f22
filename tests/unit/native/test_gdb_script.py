"""gdb/stacks.py against a stand-in for gdb: broken stacks, hostile names, limits."""

from __future__ import annotations

import json
import runpy
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest

from postmortem import places

from .fake_gdb import Error, Frame, Gdb, chain

Run = Callable[..., List[Dict[str, Any]]]
SCRIPT = places.shipped("gdb") / "stacks.py"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the script over a fake gdb; gives the lines that it wrote."""

    def run(
        gdb: Gdb, seconds: float = 60.0, files: Optional[Dict[str, str]] = None, further: Optional[List[str]] = None
    ) -> List[Dict[str, Any]]:
        path = tmp_path / "out"
        monkeypatch.setitem(sys.modules, "gdb", gdb)
        monkeypatch.setenv("POSTMORTEM_STACKS", str(path))
        monkeypatch.setenv("POSTMORTEM_STACKS_UNTIL", repr(time.monotonic() + seconds))
        if files is not None:
            monkeypatch.setenv("POSTMORTEM_STACKS_FILES", json.dumps(files))
        if further is not None:
            monkeypatch.setenv("POSTMORTEM_STACKS_NEXT", json.dumps(["/bin/prog", further]))
        runpy.run_path(str(SCRIPT))
        return [json.loads(line) for line in path.read_text().splitlines()]

    return run


def names(line: Dict[str, Any]) -> List[Optional[str]]:
    return [frame["function"] for frame in line["frames"]]


def test_threads_come_in_gdb_s_order_with_their_frames(run: Run) -> None:
    """First the head, then each thread from its most recent call on, then the end."""
    head, first, second, end = run(
        Gdb({11: chain(Frame(1, "a", symtab="a.c", line=3), Frame(2, "b")), 12: Frame(3, None)})
    )
    assert head == {"gdb": "fake", "threads": 2}
    assert first["tid"] == 11
    assert first["frames"] == [
        {"function": "a", "module": None, "address": 1, "file": "a.c", "line": 3},
        {"function": "b", "module": None, "address": 2, "file": None, "line": None},
    ]
    assert (second["tid"], names(second), second["error"]) == (12, [None], None)
    assert end["end"] is True


@pytest.mark.parametrize("failure", [Error("cannot access memory"), RuntimeError("bad"), OverflowError("pc")])
def test_a_stack_that_cannot_be_unwound_ends_alone(run: Run, failure: Exception) -> None:
    """Its frames so far and its error are written; the next thread is whole."""
    _head, broken, whole, *_again = run(Gdb({11: chain(Frame(1, "a", older=failure)), 12: Frame(3, "c")}))
    assert (names(broken), broken["error"]) == (["a"], str(failure))
    assert (names(whole), whole["error"]) == (["c"], None)


def test_a_thread_without_even_a_first_frame_has_an_error(run: Run) -> None:
    """Registers that gdb cannot read cost that thread only."""
    lines = run(Gdb({11: Error("no registers"), 12: Frame(3, "c")}))
    assert (lines[1]["frames"], lines[1]["error"]) == ([], "no registers")
    assert names(lines[2]) == ["c"]


def test_a_stop_that_is_an_error_is_named_and_a_natural_end_is_not(run: Run) -> None:
    """gdb ends a stack without raising; only some of its reasons are complaints."""
    lines = run(Gdb({11: Frame(1, stop=Gdb.FRAME_UNWIND_MEMORY_ERROR), 12: Frame(1, stop=Gdb.FRAME_UNWIND_OUTERMOST)}))
    assert [line["error"] for line in lines[1:3]] == ["reason 7", None]


def test_names_may_be_anything(run: Run) -> None:
    """A name that is no UTF-8 counts as none; a huge one is cut; a signal frame gets gdb's own words."""
    _head, line, _end = run(
        Gdb(
            {
                11: chain(
                    Frame(1, UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")),
                    Frame(2, "x" * 100_000),
                    Frame(3, None, kind=Gdb.SIGTRAMP_FRAME),
                    Frame(4, "a\nb\ud800"),
                )
            }
        )
    )
    assert names(line)[0] is None
    assert len(names(line)[1] or "") < 2_000
    assert names(line)[2:] == ["<signal handler called>", "a\nb\ud800"]


def test_an_endless_stack_is_cut(run: Run) -> None:
    """A damaged stack can go round for ever: the innermost frames are kept, and the error says so."""
    endless = Frame(1, "again")
    endless.older_frame = lambda: endless
    lines = run(Gdb({11: endless, 12: Frame(2, "c")}))
    assert len(lines[1]["frames"]) == 1024
    assert "1024" in lines[1]["error"]
    assert names(lines[2]) == ["c"]


def test_the_deadline_ends_a_walk_and_the_run(run: Run) -> None:
    """Past the deadline nothing more is unwound, and the last line says why."""
    lines = run(Gdb({11: Frame(1, "a"), 12: Frame(2, "b")}), seconds=-1.0)
    assert lines[0]["threads"] == 2
    assert lines[1:] == [{"end": False, "seconds": lines[-1]["seconds"], "stopped": "out of time"}]


def test_libraries_are_loaded_once_and_when_a_stack_reaches_them(run: Run) -> None:
    """One load a library; the walk that met it begins anew, so that no frame is there twice."""
    gdb = Gdb({11: chain(Frame(1, "a"), Frame(2, "b")), 12: Frame(2, "b")}, {1: "/lib/a.so", 2: "/lib/b.so"}.get)
    _head, first, second, _end = run(gdb)
    assert gdb.commands == ["sharedlibrary ^/lib/a.so$", "sharedlibrary ^/lib/b.so$"]
    assert (names(first), names(second)) == (["a", "b"], ["b"])
    assert [frame["module"] for frame in first["frames"]] == ["/lib/a.so", "/lib/b.so"]


@pytest.mark.parametrize(
    "name", ["/tmp/x\nshell touch /tmp/y", "/tmp/x$|.*\\(", "/tmp/\x01\r;python 1", "/tmp/bücher\n!ls"]
)
def test_a_library_s_name_cannot_become_a_command(run: Run, name: str) -> None:
    """Names come from the core: gdb gets one line without anything that its regex or its shell would read."""
    gdb = Gdb({11: Frame(1, "a")}, lambda pc: name)
    run(gdb)
    assert gdb.commands
    for command in gdb.commands:
        assert command.isprintable()
        assert command == "sharedlibrary" or not set(command) & set("\n\r;|\\(!")


def test_a_broken_stack_gets_a_second_look_with_all_libraries(run: Run) -> None:
    """A stack can break where the pc of an unloaded library could not be asked for: then everything is loaded."""
    gdb = Gdb({})
    gdb.threads[11] = lambda: (
        chain(Frame(1, "a"), Frame(2, "b")) if "sharedlibrary" in gdb.commands else Frame(1, "a", older=Error("lost"))
    )
    _head, first, second, end = run(gdb)
    assert (names(first), first["error"]) == (["a"], "lost")
    assert (names(second), second["error"]) == (["a", "b"], None)
    assert end["end"] is True


def test_libraries_that_the_core_does_not_list_are_told(run: Run) -> None:
    """A core that lost the loader's list: what gdb knows no library for is looked up among the files it is given, each
    loaded once; what gdb does know stays as it is."""
    gdb = Gdb(
        {11: chain(Frame(0x15, "a"), Frame(0x25, "b"), Frame(0x99, None)), 12: Frame(0x16, "c")}, {0x25: "/b.so"}.get
    )
    _head, first, second, end = run(gdb, files=[[0x10, 0x20, "/lib/a.so", 0x10], [0x20, 0x30, "/lib/b.so", 0x20]])
    assert gdb.commands == ["add-symbol-file /lib/a.so -o 0x10", "sharedlibrary ^/b.so$"]
    assert [frame["module"] for frame in first["frames"]] == ["/lib/a.so", "/b.so", None]
    assert (names(first), names(second), end["end"]) == (["a", "b", None], ["c"], True)


def test_a_core_without_threads_is_a_head_and_an_end(run: Run) -> None:
    """gdb without a core runs the script all the same."""
    assert [sorted(line) for line in run(Gdb({}))] == [["gdb", "threads"], ["end", "seconds", "stopped"]]


def test_further_cores_are_opened_beside_the_first(run: Run, tmp_path: Path) -> None:
    """Each in an inferior of its own, of the same program, with a file of its own; its libraries are loaded anew."""
    gdb = Gdb({11: Frame(1, "a")}, {1: "/lib/a.so"}.get)
    gdb.cores = {"/x/2.core": {21: Frame(1, "b")}, "/x/3.core": {31: Frame(1, "c"), 32: Frame(1, "d")}}
    outputs = [tmp_path / "2", tmp_path / "3"]
    first = run(gdb, further=[[core, str(path), []] for core, path in zip(gdb.cores, outputs)])
    others = [[json.loads(line) for line in path.read_text().splitlines()] for path in outputs]
    assert [[names(line) for line in lines[1:-1]] for lines in (first, *others)] == [[["a"]], [["b"]], [["c"], ["d"]]]
    assert [lines[-1]["end"] for lines in (first, *others)] == [True, True, True]
    load = "sharedlibrary ^/lib/a.so$"
    opened = [
        ["add-inferior -no-connection", f"inferior {n}", "file /bin/prog", f"core-file /x/{n}.core", load]
        for n in (2, 3)
    ]
    assert gdb.commands == [load, *opened[0], *opened[1]]


def test_a_further_core_that_does_not_open_costs_nobody_else_theirs(run: Run, tmp_path: Path) -> None:
    """Nothing is written for it: that is how the caller knows."""
    gdb = Gdb({11: Frame(1, "a")})
    gdb.cores = {"/x/2.core": Error("not in executable format"), "/x/3.core": {31: Frame(1, "c")}}
    run(gdb, further=[["/x/2.core", str(tmp_path / "2"), []], ["/x/3.core", str(tmp_path / "3"), []]])
    assert not (tmp_path / "2").exists()
    assert (tmp_path / "3").read_text().count("\n") == 3


def test_past_the_deadline_no_further_core_is_opened(run: Run, tmp_path: Path) -> None:
    """Opening one takes time, too."""
    gdb = Gdb({11: Frame(1, "a")})
    run(gdb, seconds=-1.0, further=[["/x/2.core", str(tmp_path / "2"), []]])
    assert gdb.commands == []
    assert not (tmp_path / "2").exists()
