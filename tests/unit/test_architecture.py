"""Which modules may import which, and which grammar each is written in: read from the sources."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Dict, List, Mapping, Set

import pytest

from ..support.sources import ROOT, Module, modules

#: What each part may import of ours, beside itself; what is not named here is refused. ``part.module``: that module alone.
MAY_IMPORT: Dict[str, Set[str]] = {
    # what is known, and what is concluded from it
    "evidence": set(),
    "findings": {"evidence", "waitgraph"},
    "waitgraph": {"evidence"},
    "classify": {"evidence", "findings", "signalnames", "sourcepaths", "waitgraph"},
    "report": {"evidence", "findings", "runners", "signalnames", "sourcepaths", "waitgraph"},
    # readers of memory: the standard library alone
    "arch": set(),
    "memory": {"arch", "foreign"},
    "libc": {"memory"},
    "cpython": {"libc", "memory", "redaction.secrets", "sourcepaths", "timelimits"},
    "frameworks": {"cpython", "foreign", "memory", "sourcepaths"},
    # what is foreign: files, names, processes, programs
    "foreign": {"signalnames", "sourcepaths"},
    "signalling": set(),
    "runners": set(),
    "signalnames": set(),
    "sourcepaths": set(),
    "workspace": set(),
    "errors": set(),
    "programs": {"workspace"},
    "supervision": {"signalling", "signalnames"},
    "quiet": {"foreign"},
    "places": {"foreign"},
    "sizes": {"errors"},
    "timelimits": set(),
    "narration": {"runners"},
    "progress": {"narration"},
    "redaction": {"evidence"},
    "archive": {"errors", "foreign", "supervision"},
    "bundle": {"archive", "errors", "foreign"},
    # from a command, a process or a core to evidence
    "capture": {
        "arch", "bundle", "cores", "cpython", "errors", "foreign", "frameworks", "memory", "narration", "programs",
        "quiet", "redaction.commands", "signalling", "signalnames", "supervision", "timelimits", "workspace",
    },
    "cores": {"errors", "evidence", "foreign", "memory", "programs", "redaction.commands", "sizes"},
    "native": {
        "cores", "errors", "evidence", "libc", "memory", "places", "programs", "quiet", "signalling", "signalnames",
    },
    "extract": {
        "arch", "bundle", "cores", "cpython", "errors", "evidence", "foreign", "frameworks", "libc", "memory",
        "native", "redaction", "signalnames", "sourcepaths", "timelimits",
    },
    # what joins them, and what people and programs start
    "publish": {"errors", "foreign", "report"},
    "pipeline": {
        "bundle", "classify", "cores", "errors", "evidence", "extract", "findings", "foreign", "publish", "redaction", "report",
        "sizes",
    },
    "strip": {"bundle", "errors", "evidence", "foreign", "pipeline", "redaction", "report"},
    "debug": {"bundle", "cores", "errors", "extract", "foreign", "native", "programs", "report"},
    "gdbchild": {
        "arch", "capture.freeze", "capture.procfs.parsers", "cores", "cpython", "errors", "evidence", "extract", "findings",
        "foreign", "memory", "native", "pipeline", "redaction", "report", "runners",
    },
    "demo": {"errors", "places", "programs"},
    "doctor": {"capture", "cores", "errors", "foreign", "memory", "native", "places", "programs"},
    "api": {"errors", "evidence", "findings", "pipeline", "report"},
    "cli": {
        "capture.options", "classify", "cores", "debug", "demo", "doctor", "errors", "evidence", "findings", "pipeline",
        "progress", "publish", "report", "strip", "supervision",
    },
    "__main__": {
        "bundle", "capture", "cli", "errors", "extract", "narration", "pipeline", "publish", "supervision",
    },
    "pytesting": {
        "__main__", "bundle", "capture", "errors", "foreign", "narration", "pipeline", "programs", "signalling",
    },
    "pytest_plugin": {"pytesting"},
}  # fmt: skip
STDLIB_ALONE = {
    "signalnames",
    "sourcepaths",
    "arch",
    "foreign",
    "memory",
    "cpython",
    "frameworks",
    "libc",
    "redaction.secrets",
    "timelimits",
}
#: What gdb's scripts import beside gdb and the standard library: each other, under this name.
GDB_PACKAGE = "postmortem_gdb"
# Whose `subprocess` is for its constants and errors: what starts is `programs`.
MAY_START_PROGRAMS = {"programs", "capture", "cores", "native", "demo", "doctor"}
MAY_IMPORT_CLICK = {"cli"}

#: The only module that signals processes by their numbers: it makes sure that they are the ones that were meant.
SIGNALS = "signalling"
MAY_SIGNAL_BY_NUMBER = {
    SIGNALS: "this is what it is for",
    "foreign.children": "its own children that nobody has waited for; it imports nothing of ours",
}
SENDERS = {"os", "posix", "signal", "_signal"}
BY_NUMBER = {"kill", "killpg", "pidfd_send_signal", "pthread_kill", "raise_signal", "sigqueue", "tgkill"}
BY_OBJECT = {"kill", "terminate", "send_signal"}
#: Who may call these methods of a Popen: it sends nothing once its process has been waited for, and an unreaped child keeps
#: its number. None of them is called while another thread may wait for the same process.
MAY_SIGNAL_POPEN = {
    "cores.codecs": "the tool that unpacks, by the generator that reads from it and alone waits for it",
    "cores.journal": "journalctl, by the thread that waits for it; its timer goes by the number and the start time",
    "native.interactive": "gdb, by the only thread that there is",
}

# PyPI names of the dependencies as they are imported: Pythons before 3.10 do not list their own modules.
THIRD_PARTY = {"click", "lz4", "zstandard", "msgspec", "pygments", "tomli", "pytest", "jsonschema"}


def violations(found: Mapping[str, Module]) -> List[str]:
    """Every breach of the rules, one sentence each."""
    parts = {name.split(".")[0] for name in found}
    broken: List[str] = []
    for module in found.values():
        broken += _own(module, parts) + _foreign(module) + _signals(module)
    return broken


def _own(module: Module, parts: Set[str]) -> List[str]:
    if module.name == "":
        return []  # the package itself: see tests/unit/test_api.py
    if module.part not in MAY_IMPORT:
        return [f"{module.part} is not listed in MAY_IMPORT"]
    allowed = MAY_IMPORT[module.part] | {module.part}
    broken = set()
    for name in module.ours - {""}:
        part = name.split(".")[0]
        if part not in parts or part in allowed or any(name == one or name.startswith(f"{one}.") for one in allowed):
            continue
        if name == part and any(one.startswith(f"{part}.") for one in allowed):
            continue  # `from ..redaction import secrets` names both: the module is looked at
        broken.add(f"{module.name} imports {part if not any(o.startswith(part + '.') for o in allowed) else name}")
    return sorted(broken)


def cycles(links: Mapping[str, Set[str]]) -> List[List[str]]:
    """Those that import each other, directly or through others: each circle once (Tarjan's algorithm)."""
    index: Dict[str, int] = {}
    lowest: Dict[str, int] = {}
    open_ones: List[str] = []
    circles: List[List[str]] = []

    def visit(name: str) -> None:
        index[name] = lowest[name] = len(index)
        open_ones.append(name)
        for target in sorted(links[name]):
            if target not in index:
                visit(target)
            if target in open_ones:
                lowest[name] = min(lowest[name], lowest[target])
        if lowest[name] == index[name]:
            circle = open_ones[open_ones.index(name) :]
            del open_ones[-len(circle) :]
            if len(circle) > 1:
                circles.append(sorted(circle))

    for name in sorted(links):
        if name not in index:
            visit(name)
    return circles


def _foreign(module: Module) -> List[str]:
    broken = []
    if "gdb" in module.others:
        broken.append(f"{module.name} imports gdb, which exists only inside gdb")
    if "click" in module.others and module.part not in MAY_IMPORT_CLICK:
        broken.append(f"{module.name} imports click")
    if "subprocess" in module.others and module.part not in MAY_START_PROGRAMS:
        broken.append(f"{module.name} imports subprocess")
    if module.part in STDLIB_ALONE or module.name in STDLIB_ALONE:
        broken += [f"{module.name} imports {name}" for name in sorted(module.others) if not _standard(name)]
    return broken


def _signals(module: Module) -> List[str]:
    """Breaches of the rule that one module sends signals: every mention of a function that does, called or handed on."""
    broken = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module in SENDERS and module.name not in MAY_SIGNAL_BY_NUMBER:
            broken += [
                f"{module.name} imports {node.module}.{a.name}" for a in node.names if a.name in BY_NUMBER | {"*"}
            ]
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in SENDERS:
                if node.attr in BY_NUMBER and module.name not in MAY_SIGNAL_BY_NUMBER:
                    broken.append(f"{module.name} uses {node.value.id}.{node.attr}, which only {SIGNALS} may")
            elif node.attr in BY_OBJECT and not _is_ours(node, module) and module.name not in MAY_SIGNAL_POPEN:
                broken.append(f"{module.name} uses .{node.attr}, and is not listed in MAY_SIGNAL_POPEN")
    return broken


def _is_ours(node: ast.Attribute, module: Module) -> bool:
    """A method of the module's own, called through self."""
    mine = isinstance(node.value, ast.Name) and node.value.id == "self"
    return mine and any(isinstance(n, ast.FunctionDef) and n.name == node.attr for n in ast.walk(module.tree))


def _standard(name: str) -> bool:
    if sys.version_info >= (3, 10):
        return name in sys.stdlib_module_names
    return name not in THIRD_PARTY  # type: ignore[unreachable] # Python 3.8 and 3.9


def test_the_rules_hold() -> None:
    """No module imports what it must not know."""
    found = modules()
    assert len(found) > 20
    assert violations(found) == []


def test_nobody_imports_in_a_circle() -> None:
    """Neither modules nor parts: what is below knows nothing of what is above."""
    found = modules()
    assert cycles({name: module.depends_on(found) for name, module in found.items() if name}) == []
    assert cycles({part: {name.split(".")[0] for name in allowed} for part, allowed in MAY_IMPORT.items()}) == []


def test_a_circle_is_found() -> None:
    """Through others as well; what only leads to it is no part of it."""
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [["b", "c"]]
    found = {"a": Module("a", "from . import b"), "b": Module("b", "from .a import x"), "": Module("", "", True)}
    assert cycles({name: module.depends_on(found) for name, module in found.items() if name}) == [["a", "b"]]


def test_the_list_grants_nothing_that_nobody_uses() -> None:
    """A permission that is not needed any more is taken back, and every part that is named exists."""
    found = modules()
    used: Dict[str, Set[str]] = {part: set() for part in {module.part for module in found.values()} - {""}}
    for module in found.values():
        if module.name:
            used[module.part] |= module.depends_on(found)
    assert sorted(set(MAY_IMPORT) - set(used)) == []
    spare = {
        f"{part}: {other}"
        for part, allowed in MAY_IMPORT.items()
        for other in allowed
        if not any(name == other or name.startswith(f"{other}.") for name in used[part])
    }
    assert spare == set()


@pytest.mark.parametrize("path", sorted((ROOT / "gdb").glob("*.py")), ids=lambda path: path.name)
def test_scripts_for_gdb_need_nothing_but_their_own_python(path: Path) -> None:
    """gdb's Python has no site-packages: its scripts import gdb, the standard library and each other, and nothing of the
    package. There is one engine, and it runs in a child."""
    module = Module(f"gdb.{path.stem}", path.read_text("utf-8"))
    assert {name for name in module.others if name not in ("gdb", GDB_PACKAGE) and not _standard(name)} == set()
    siblings = {f"gdb.{each.stem}" for each in path.parent.glob("*.py")} | {"gdb"}  # so the package calls them here
    assert {name for name in module.ours if not any(f"{name}.".startswith(f"{one}.") for one in siblings)} == set()


@pytest.mark.parametrize(
    ("name", "source", "sentence"),
    [
        ("evidence", "from .memory import base", "evidence imports memory"),
        ("findings.told", "import postmortem.report", "findings.told imports report"),
        ("classify.patterns.x", "from ...capture import command", "classify.patterns.x imports capture"),
        ("classify.engine", "def f():\n    from .. import capture", "classify.engine imports capture"),
        ("report.text.textreport", "from ...errors import UsageError", "report.text.textreport imports errors"),
        ("cpython.frames.frame", "import msgspec", "cpython.frames.frame imports msgspec"),
        ("cpython.frames.frame", "from ... import evidence", "cpython.frames.frame imports evidence"),
        (
            "cpython.frames.frame",
            "from ...redaction import evidence",
            "cpython.frames.frame imports redaction.evidence",
        ),
        ("newcomer", "", "newcomer is not listed in MAY_IMPORT"),
        ("memory.elf", "from ..cpython import objects", "memory.elf imports cpython"),
        ("extract", "import gdb", "extract imports gdb, which exists only inside gdb"),
        ("pipeline", "import click", "pipeline imports click"),
        ("report.text.textreport", "import subprocess", "report.text.textreport imports subprocess"),
        ("capture.run.command", "from ...classify import engine", "capture.run.command imports classify"),
        ("native", "import os\nos.killpg(1, 9)", "native uses os.killpg, which only signalling may"),
        (
            "capture.run.termination",
            "import os\nf(os.kill)",
            "capture.run.termination uses os.kill, which only signalling may",
        ),
        ("pytesting", "import posix as os\nos.kill(1, 9)", "pytesting uses os.kill, which only signalling may"),
        ("demo", "from os import kill as k", "demo imports os.kill"),
        ("native", "process.terminate()", "native uses .terminate, and is not listed in MAY_SIGNAL_POPEN"),
    ],
)
def test_a_breach_is_caught(name: str, source: str, sentence: str) -> None:
    """The check itself works: each rule, broken in a made-up module, gives its sentence."""
    found = {part: Module(part, "") for part in MAY_IMPORT}
    found[name] = Module(name, source)
    assert violations(found) == [sentence]


def test_a_capture_reaches_no_diagnosis() -> None:
    """Not through others either: it reads and never judges."""
    reached: Set[str] = set()
    todo = ["capture"]
    while todo:
        part = todo.pop()
        new = {name.split(".")[0] for name in MAY_IMPORT[part]} - reached
        reached |= new
        todo += new
    assert not reached & {"classify", "extract", "findings", "pipeline", "report", "waitgraph"}


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("classify.engine", "from ..evidence import Evidence\nfrom . import pattern"),
        ("cpython.frames.frame", "import struct\nfrom ..memory.base import Memory"),
        ("capture.run.command", "import subprocess"),
        ("cli", "import click"),
        ("signalling", "import os\nos.kill(1, 9)"),
        ("cores.codecs", "process.kill()"),
    ],
)
def test_what_is_allowed_passes(name: str, source: str) -> None:
    """The check does not cry wolf."""
    found = {part: Module(part, "") for part in MAY_IMPORT}
    found[name] = Module(name, source)
    assert violations(found) == []


def test_later_grammar_is_refused() -> None:
    """A match statement does not parse as Python 3.8."""
    with pytest.raises(SyntaxError):
        Module("x", "match 1:\n    case 1: pass")


#: f-strings in classification that make no words, and what they make.
NO_WORDS = {
    "classify.engine": "the name of a package to import",
    "classify.signature": "the text that is hashed",
    "findings.texts": "an error about a template",
    "classify.facts.fixed_in": "a path to compare",
    "classify.facts.knowledge": "a path to compare",
    "classify.patterns.gil.regex_backtracking": "qualified names to compare",
    "classify.patterns.crashes.fatalwords": "the interpreter's own message, as it writes it",
    "waitgraph.agents": "the names of threads, tasks and processes",
    "waitgraph.edges": "the name of a thread",
}


def test_classification_makes_no_words() -> None:
    """A pattern's texts are templates with slots; what makes words of facts stands in report/phrases."""
    making = {
        name
        for name, module in modules().items()
        if module.part in ("classify", "waitgraph", "findings")
        and any(isinstance(node, ast.JoinedStr) for node in ast.walk(module.tree))
    }
    assert making == set(NO_WORDS)
