"""The child as gdb starts it, with a test in gdb's place."""

from __future__ import annotations

import json
import socket
import struct
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from postmortem import programs

from ...support.elves import core, program

LENGTH = struct.Struct("<I")
HANG_S = 60.0


class Child:
    """A child of its own."""

    def __init__(self, known: str = "") -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(HANG_S)
        words = [*programs.python("postmortem.gdbchild.child", [known]), str(theirs.fileno())]
        self.process = programs.start("python", words, pass_fds=[theirs.fileno()])
        theirs.close()

    def say(self, value: Dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.socket.sendall(LENGTH.pack(len(data)) + data)

    def hear(self) -> Dict[str, Any]:
        (size,) = LENGTH.unpack(self.socket.recv(4, socket.MSG_WAITALL))
        found: Dict[str, Any] = json.loads(self.socket.recv(size, socket.MSG_WAITALL))
        return found

    def ask(self, command: str, *arguments: str) -> List[str]:
        """Its lines, or the error."""
        self.say({"command": command, "arguments": list(arguments), "selected": 7, "threads": [[1, 7]]})
        lines: List[str] = []
        while True:
            answer = self.hear()
            if "lines" not in answer:
                return [answer["error"]] if "error" in answer else lines
            lines += [text for _style, text in answer["lines"]]


@pytest.fixture
def child() -> Iterator[Child]:
    found = Child()
    yield found
    found.socket.close()
    assert found.process.wait(HANG_S) == 0  # it ends with its socket


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A core of no Python."""
    (tmp_path / "prog").write_bytes(program(b"\1" * 20))
    path = tmp_path / "core"
    path.write_bytes(
        core([(0x400000, 0x401000, 0, str(tmp_path / "prog"))], {3: 0x400040}, {0x400000: program(b"\1" * 20)})
    )
    return path


def test_a_core_that_is_no_python_s(child: Child, file: Path) -> None:
    """Everything that wants an interpreter says so; the report is there all the same. One child answers again and again."""
    child.say({"core": str(file), "exe": None, "sysroot": None, "pid": 0})
    for command in ("pm-threads", "pm-bt", "pm-locals", "pm-locks", "pm-tasks", "pm-gil", "pm-objects"):
        (said,) = child.ask(command)
        assert said.startswith("no Python interpreter can be read here"), command
    assert child.ask("pm-why")[0].startswith("Verdict")


def test_what_is_no_core(child: Child, tmp_path: Path) -> None:
    """One sentence with the next step, each time that somebody asks."""
    (tmp_path / "text").write_text("no core")
    child.say({"core": str(tmp_path / "text"), "exe": None, "sysroot": None, "pid": 0})
    for command in ("pm-threads", "pm-why"):
        (said,) = child.ask(command)
        assert "is not a core file" in said


def test_questions_that_are_none(child: Child, file: Path) -> None:
    """A command of another version, and arguments that a command does not have."""
    child.say({"core": str(file), "exe": None, "sysroot": None, "pid": 0})
    assert child.ask("pm-new") == ["gdb's scripts and postmortem are of different versions: reinstall both"]
    assert child.ask("pm-bt", "--all") == ["Usage: pm-bt [--native] [all | TID]"]
    assert child.ask("pm-tasks", "a", "b") == ["Usage: pm-tasks [NAME]"]
    assert child.ask("pm-objects", "-1") == ["Usage: pm-objects [COUNT]"]


def test_a_live_process_that_makes_no_sense(child: Child) -> None:
    """What gdb tells of it is not what a gdb tells."""
    child.say({"core": None, "pid": 7, "exe": None, "sysroot": None, "registers": [], "mappings": [[1]], "auxv": []})
    (said,) = child.ask("pm-threads")
    assert "gdb's answer about the process makes no sense" in said
    assert "a defect" not in said


def test_it_ends_with_gdb_whatever_it_is_at(file: Path) -> None:
    """It waits for gdb to read something; gdb is gone then."""
    child = Child()
    child.say(
        {
            "core": None, "pid": 7, "exe": None, "sysroot": None, "local": False, "uids": ["0"], "auxv": [[3, 0x400040]],
            "registers": [[7, {"rip": 1, "rsp": 0x400000}]], "mappings": [[0x400000, 0x500000, 0, "rw-p", ""]],
        }
    )  # fmt: skip
    child.say({"command": "pm-threads"})
    assert "read" in child.hear()
    child.socket.close()
    assert child.process.wait(HANG_S) == 0
