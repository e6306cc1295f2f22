"""gdb/crash.py against a stand-in for gdb, and what it writes read back."""

from __future__ import annotations

import json
import runpy
import sys
import time
import types
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import pytest

from postmortem import places
from postmortem.native.stacks import CrashFrame, CrashPlace, Said, read_transcript

from .fake_gdb import Error, Frame, Gdb, chain

Run = Callable[..., Any]
SCRIPT = places.shipped("gdb") / "crash.py"


class Value:
    """gdb.Value of a ``const char *``."""

    def __init__(self, text: Any, optimized: bool = False) -> None:
        self._text, self.is_optimized_out = text, optimized

    def __int__(self) -> int:
        return 0 if self._text is None else 0x1000

    def string(self, encoding: str, errors: str) -> Any:
        if isinstance(self._text, Exception):
            raise self._text
        return self._text


class Seen(Frame):
    """A frame with registers, code and arguments."""

    def __init__(
        self,
        pc: int,
        name: Any = "f",
        sp: int = 0x7000,
        code: Any = "mov    (%rdi),%rax",
        variables: Optional[Dict[str, Any]] = None,
        **more: Any,
    ) -> None:
        super().__init__(pc, name, **more)
        self._sp, self._code, self._variables = sp, code, variables or {}

    def read_register(self, name: Any) -> int:
        if name in ("rax", "fs_base"):
            raise Error("not available")
        return self._sp if name in ("sp", "rsp") else -1

    def architecture(self) -> types.SimpleNamespace:
        if isinstance(self._code, Exception):
            raise self._code
        return types.SimpleNamespace(disassemble=lambda pc, count: [{"asm": self._code, "length": 3}])

    def read_var(self, name: Any) -> Any:
        if name not in self._variables:
            raise ValueError(name)
        return self._variables[name]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the script over a stand-in, after a line that stacks.py wrote; gives what is read back."""

    def run(newest: Any, crashed: int = 11, seconds: float = 60.0) -> Any:
        gdb: Any = Gdb({11: newest, 12: Seen(1)})
        gdb.inferior = gdb.selected_inferior
        gdb.selected_inferior = lambda: types.SimpleNamespace(
            threads=gdb.inferior().threads, read_memory=lambda at, size: b"\x48\x8b\x07"[:size]
        )
        path = tmp_path / "out"
        path.write_text(json.dumps({"gdb": "fake", "threads": 2}) + "\n")
        monkeypatch.setitem(sys.modules, "gdb", gdb)
        monkeypatch.setenv("POSTMORTEM_STACKS", str(path))
        monkeypatch.setenv("POSTMORTEM_STACKS_UNTIL", repr(time.monotonic() + seconds))
        monkeypatch.setenv("POSTMORTEM_CRASHED", str(crashed))
        runpy.run_path(str(SCRIPT))
        found = read_transcript(path)
        assert (found.version, found.damaged) == ("fake", 0)
        return found.crash

    return run


def test_the_innermost_frame(run: Run) -> None:
    """Its instruction on one line with its bytes, and the registers that gdb has."""
    found = run(chain(Seen(0x10, "strlen"), Seen(0x20, None, sp=0x7010)))
    assert (found.crash, found.whole, found.error) == (11, True, None)
    assert found.frames == (CrashFrame(0x10, "strlen", 0x7000, False), CrashFrame(0x20, None, 0x7010, False))
    assert [(p.frame, p.instruction, p.code) for p in found.places] == [(0, "mov (%rdi),%rax", "488b07")]
    assert (found.places[0].registers["rsp"], found.places[0].registers["rdi"]) == (0x7000, (1 << 64) - 1)
    assert "rax" not in found.places[0].registers


def test_what_a_handler_interrupted_is_a_place_too(run: Run) -> None:
    """It stands below the kernel's trampoline; one that ends the stack interrupted nobody."""
    trampoline, last = (Seen(0x20, kind=Gdb.SIGTRAMP_FRAME) for _ in range(2))
    found = run(chain(Seen(0x10, "raise"), trampoline, Seen(0x30, "strlen"), last))
    assert [frame.trampoline for frame in found.frames] == [False, True, False, True]
    assert [place.frame for place in found.places] == [0, 2]


def test_code_that_is_not_there_has_no_instruction(run: Run) -> None:
    """A jump that went astray."""
    found = run(Seen(0x10, code=Error("Cannot access memory")))
    assert found.places == (CrashPlace(0, None, None, found.places[0].registers),)


def test_the_arguments_of_a_fatal_error(run: Run) -> None:
    """As far as debug information has them: neither null, nor optimised out, nor unreadable."""
    inner = Seen(1, "fatal_error", variables={"prefix": Value(None), "msg": Value("x", optimized=True)})
    middle = Seen(2, "_Py_FatalErrorFunc.cold", variables={"func": Value("PyThing"), "msg": Value("broken")})
    other = Seen(3, "my_fatal_error", variables={"msg": Value("nobody asked")})
    outer = Seen(4, "Py_FatalError", variables={"msg": Value(Error("memory"))})
    found = run(chain(inner, middle, other, outer))
    name = "_Py_FatalErrorFunc.cold"
    assert found.said == (Said(name, "func", "PyThing"), Said(name, "msg", "broken"))


def test_an_endless_stack_is_cut(run: Run) -> None:
    """And said not to be whole."""
    endless = Seen(1, "again")
    endless.older_frame = lambda: endless
    found = run(endless)
    assert (len(found.frames), found.whole) == (1024, False)


def test_a_stack_that_breaks_keeps_what_it_had(run: Run) -> None:
    """With the reason."""
    found = run(chain(Seen(1, "a", older=Error("lost"))))
    assert ([f.function for f in found.frames], found.whole, found.error) == (["a"], False, "lost")
    assert run(Error("no registers")).error == "no registers"


def test_a_thread_that_is_not_there_and_time_that_is_over(run: Run) -> None:
    """Nothing is written then."""
    assert run(Seen(1), crashed=99) is None
    assert run(Seen(1), seconds=-1.0) is None
