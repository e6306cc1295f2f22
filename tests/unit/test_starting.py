"""Which programs are ever started, by whom, and that nothing else starts or forks any: read from the sources."""

from __future__ import annotations

import ast
import re
from typing import Iterator, Set, Tuple

import pytest

from postmortem import programs

from ..support.sources import ROOT, Module, modules

#: All that is started. A program that reads what a repository configures (git and its like) is never to be among them.
STARTED = {
    ("capture.observe.pyspy", "py-spy or python"),
    ("cores.codecs", "decompressor"),
    ("cores.journal", "journalctl"),
    ("demo", "python"),
    ("doctor.tools", "what its caller names"),
    ("native.interactive", "gdb"),
    ("native.locate", "gdb"),
    ("native.unwinding", "gdb"),
    ("pytesting.start", "python"),
    ("pytesting.strike", "python"),
}
#: Modules that have the program's name in a variable.
_BY_VARIABLE = {"capture.observe.pyspy": "py-spy or python", "doctor.tools": "what its caller names"}
#: Who makes a process otherwise, and why.
ALLOWED = {
    ("programs", "Popen"): "the place where programs are started",
    ("programs", "run"): "the place where programs are started",
    ("programs", "posix_spawn"): "the place where programs are started",
    ("capture.run.spawn", "posix_spawnp"): "the command under capture: its environment and folder are its user's",
    ("capture.run.spawn", "posix_spawn"): "the command under capture, when it is a script that names no interpreter",
    ("capture.run.background", "fork"): "a diagnosis beside the command; runs no other program",
    ("doctor.rights", "fork"): "a child to trace; runs no other program",
    ("foreign.children", "fork"): "a child that touches files of others; runs no other program",
    ("pytesting.examine", "fork"): "the capture beside the import of the diagnosis; runs no other program",
    ("supervision", "fork"): "a child that parses what others made; runs no other program",
    ("pytesting.watchdog", "fork"): "the launcher's end leaves the watchdog nobody's child; runs no other program",
}
_OF_OS = ("fork", "forkpty", "system", "popen", "startfile")
_OF_OS_PREFIXES = ("exec", "spawn", "posix_spawn")
_OF_SUBPROCESS = ("Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput")
_REFUSED_MODULES = {"multiprocessing", "pty", "popen2", "commands", "_posixsubprocess", "concurrent"}


def starts(module: Module) -> Iterator[str]:
    """The calls that make a process, by name; a name that is imported from such a module counts as a call."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner, name = node.value.id, node.attr
            if owner == "subprocess":
                made = name in _OF_SUBPROCESS and not _is_annotation(module, node)
            elif owner == "asyncio":
                made = "subprocess" in name
            else:
                made = owner in ("os", "posix") and (name in _OF_OS or name.startswith(_OF_OS_PREFIXES))
            if made:
                yield name
        elif isinstance(node, ast.ImportFrom) and node.module in ("subprocess", "os", "posix"):
            for alias in node.names:
                if alias.name in (*_OF_SUBPROCESS, *_OF_OS) or alias.name.startswith(_OF_OS_PREFIXES):
                    yield alias.name


def _is_annotation(module: Module, wanted: ast.AST) -> bool:
    """Is it the name of a type: of an argument, a result, a variable?"""
    for node in ast.walk(module.tree):
        annotations = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if any(found is not None and wanted in ast.walk(found) for found in annotations):
            return True
    return False


def users(module: Module) -> Iterator[str]:
    """How a module calls programs.start, run and spawn: the names that it gives, or why there is none to be read."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if not isinstance(node.func.value, ast.Name) or node.func.value.id != "programs":
            continue
        if node.func.attr in ("start", "run", "spawn"):
            first = node.args[0]
            yield str(first.value) if isinstance(first, ast.Constant) else ast.dump(first)


def test_nobody_else_starts_anything() -> None:
    """Every call that makes a process is in the list, and every entry of the list is a call that is there."""
    found: Set[Tuple[str, str]] = {(module.name, name) for module in modules().values() for name in starts(module)}
    assert found == set(ALLOWED)
    refused = {(m.name, name) for m in modules().values() for name in m.others if name in _REFUSED_MODULES}
    assert refused == set()


def test_what_is_started_is_listed() -> None:
    """Which module starts which program; a name that is not in PROGRAMS is refused when it is used."""
    found = set()
    for module in modules().values():
        for name in users(module):
            assert name in programs.PROGRAMS or module.name in _BY_VARIABLE
            found.add((module.name, _BY_VARIABLE.get(module.name, name)))
    assert found == STARTED
    assert set(programs.PROGRAMS) == {"python", "gdb", "py-spy", "journalctl", "decompressor"}


def test_in_gdb_one_script_starts_the_child_alone() -> None:
    """gdb's scripts start nothing but postmortem's own interpreter, in one place; none has gdb run a shell."""
    scripts = sorted((ROOT / "gdb").glob("*.py"))
    found = {(path.stem, name) for path in scripts for name in starts(Module(path.stem, path.read_text("utf-8")))}
    assert found == {("engine", "Popen")}
    assert [
        path.name for path in scripts if re.search(r"execute\(f?[\"'](shell|!|pipe|\|)", path.read_text("utf-8"))
    ] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import subprocess\nsubprocess.run(['git'])", ["run"]),
        ("import subprocess\ndef f(p: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]: ...", []),
        ("import subprocess\nx = subprocess.PIPE", []),
        ("from subprocess import Popen", ["Popen"]),
        ("import os\nos.execv('/bin/sh', ['sh'])", ["execv"]),
        ("import os\nos.system('git status')", ["system"]),
        ("import posix as os\nos.fork()", ["fork"]),
        ("import asyncio\nasyncio.create_subprocess_exec('git')", ["create_subprocess_exec"]),
    ],
)
def test_the_check_itself(source: str, expected: list) -> None:  # type: ignore[type-arg]
    """Each way to make a process is seen; constants and types are none."""
    assert list(starts(Module("x", source))) == expected
