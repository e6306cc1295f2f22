"""Who may know whom, and which grammar the modules are written in: read from the sources."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Set

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "postmortem"

# What each part may import of ours; a part that is not named here may import everything.
MAY_IMPORT: Dict[str, Set[str]] = {
    "errors": set(),
    "evidence": set(),
    "findings": set(),
    "waitgraph": {"waitgraph", "evidence"},
    "classify": {"classify", "evidence", "findings", "waitgraph"},
    "runners": set(),
    "report": {"report", "evidence", "findings", "waitgraph", "runners"},
    "foreign": set(),
    "memory": {"memory", "foreign"},
    "cpython": {"cpython", "foreign", "memory"},
    "libc": {"libc", "memory"},
}
STDLIB_ALONE = {"foreign", "memory", "cpython", "libc"}
#: Single modules of other parts that gdb's scripts import as well.
GDB_USES = {"syscalls", "runners", "native.merge", "extract.calls_aarch64", "extract.joins"}
# Whose `subprocess` is for its constants and errors: what starts is `programs`.
MAY_START_PROGRAMS = {"programs", "capture", "cores", "native", "demo", "doctor"}
MAY_IMPORT_CLICK = {"cli", "options", "invocation"}  # kept out of cli for its length
NEVER_REACHES = {"capture": "classify"}  # not even through others: __main__ joins the two

#: The only module that signals processes by their numbers: it makes sure that they are the ones that were meant.
SIGNALS = "signalling"
MAY_SIGNAL_BY_NUMBER = {
    SIGNALS: "this is what it is for",
    "foreign.children": "its own children that nobody has waited for; it imports nothing of ours, since gdb runs it too",
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


class Module:
    """One source file: its dotted name below the package and what it imports, wherever in the file that stands."""

    def __init__(self, name: str, source: str, is_package: bool = False) -> None:
        self.name = name
        self.tree = ast.parse(source, feature_version=(3, 8))
        package = name.split(".") if is_package else name.split(".")[:-1]
        if name == "":
            package = []
        self.imports = set(_imports(self.tree, package))

    @property
    def part(self) -> str:
        return self.name.split(".")[0]

    @property
    def ours(self) -> Set[str]:
        """Modules of the package that it imports, below the package: `memory.elf`."""
        return {name[len("postmortem") :].lstrip(".") for name in self.imports if name.split(".")[0] == "postmortem"}

    @property
    def others(self) -> Set[str]:
        return {name.split(".")[0] for name in self.imports} - {"postmortem", "__future__"}


def _imports(tree: ast.AST, package: List[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                upper = ["postmortem", *package][: len(package) + 2 - node.level]
                base = ".".join(filter(None, [*upper, node.module]))
                # `from . import report` names a module, `from .report import x` may name either: both are given.
                yield from (f"{base}.{alias.name}" for alias in node.names)
            yield base


def modules() -> Dict[str, Module]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "_shipped" in path.parts:
            continue
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(name, path.read_text("utf-8"), is_package)
    return found


def violations(found: Mapping[str, Module]) -> List[str]:
    """Every breach of the rules, one sentence each."""
    parts = {name.split(".")[0] for name in found}
    broken: List[str] = []
    for module in found.values():
        broken += _own(module, parts) + _foreign(module) + _signals(module)
    for part, forbidden in NEVER_REACHES.items():
        broken += _reaches(found, part, forbidden)
    return broken


def _own(module: Module, parts: Set[str]) -> List[str]:
    allowed = MAY_IMPORT.get(module.part)
    if allowed is None:
        return []
    known = {name.split(".")[0] for name in module.ours} & parts - {""}
    return [f"{module.name} imports {name}" for name in sorted(known - allowed - {module.part})]


def _foreign(module: Module) -> List[str]:
    broken = []
    if "gdb" in module.others:
        broken.append(f"{module.name} imports gdb, which exists only inside gdb")
    if "click" in module.others and module.part not in MAY_IMPORT_CLICK:
        broken.append(f"{module.name} imports click")
    if "subprocess" in module.others and module.part not in MAY_START_PROGRAMS:
        broken.append(f"{module.name} imports subprocess")
    if module.part in STDLIB_ALONE:
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
    return name not in THIRD_PARTY


def _reaches(found: Mapping[str, Module], part: str, forbidden: str) -> List[str]:
    todo = [name for name in found if name.split(".")[0] == part]
    seen = {
        *todo,
        "",
    }  # the package itself imports its public names only when they are asked for: tests/unit/test_api.py
    while todo:
        name = todo.pop()
        for target in sorted(found[name].ours):
            if target.split(".")[0] == forbidden:
                return [f"{part} reaches {forbidden} through {name}"]
            if target in found and target not in seen:
                seen.add(target)
                todo.append(target)
    return []


def test_the_rules_hold() -> None:
    """No module imports what it must not know."""
    found = modules()
    assert len(found) > 20
    assert violations(found) == []


@pytest.mark.parametrize("path", sorted((ROOT / "gdb").glob("*.py")), ids=lambda path: path.name)
def test_scripts_for_gdb_need_nothing_but_their_own_python(path: Path) -> None:
    """gdb's Python has no site-packages: its scripts import gdb, the standard library, each other, and of ours what needs
    the standard library alone."""
    module = Module(f"gdb.{path.stem}", path.read_text("utf-8"))
    foreign = {name for name in module.others if name not in ("gdb", "postmortem_gdb") and not _standard(name)}
    assert foreign == set()
    assert [name for name in sorted(module.ours) if not _runs_in_gdb(name)] == []


def _runs_in_gdb(name: str) -> bool:
    parts = {*STDLIB_ALONE, *GDB_USES, "gdb"}  # `from .session import Session` in gdb/ is gdb.session here
    return name in ("", "native", "extract") or any(name == part or name.startswith(f"{part}.") for part in parts)


@pytest.mark.parametrize("name", sorted(GDB_USES))
def test_what_gdb_uses_of_other_parts_needs_the_standard_library_alone(name: str) -> None:
    """At run time, that is: imports for type checkers are no imports. Of ours only what runs in gdb as well."""
    module = modules()[name]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    module.imports = set(_imports(module.tree, name.split(".")[:-1]))
    assert [found for found in sorted(module.ours) if not _runs_in_gdb(found)] == []
    assert all(_standard(found) for found in module.others)


@pytest.mark.parametrize(
    ("name", "source", "sentence"),
    [
        ("evidence", "from .memory import base", "evidence imports memory"),
        ("findings", "import postmortem.evidence", "findings imports evidence"),
        ("classify.patterns.x", "from ...capture import command", "classify.patterns.x imports capture"),
        ("classify.engine", "def f():\n    from .. import capture", "classify.engine imports capture"),
        ("report.text", "from ..errors import UsageError", "report.text imports errors"),
        ("cpython.frames", "import msgspec", "cpython.frames imports msgspec"),
        ("cpython.frames", "from .. import evidence", "cpython.frames imports evidence"),
        ("memory.elf", "from ..cpython import objects", "memory.elf imports cpython"),
        ("extract", "import gdb", "extract imports gdb, which exists only inside gdb"),
        ("pipeline", "import click", "pipeline imports click"),
        ("report.text", "import subprocess", "report.text imports subprocess"),
        ("capture.command", "from ..classify import engine", "capture reaches classify through capture.command"),
        ("native", "import os\nos.killpg(1, 9)", "native uses os.killpg, which only signalling may"),
        ("capture.ending", "import os\nf(os.kill)", "capture.ending uses os.kill, which only signalling may"),
        ("pytesting", "import posix as os\nos.kill(1, 9)", "pytesting uses os.kill, which only signalling may"),
        ("demo", "from os import kill as k", "demo imports os.kill"),
        ("native", "process.terminate()", "native uses .terminate, and is not listed in MAY_SIGNAL_POPEN"),
    ],
)
def test_a_breach_is_caught(name: str, source: str, sentence: str) -> None:
    """The check itself works: each rule, broken in a made-up module, gives its sentence."""
    found = {part: Module(part, "") for part in ("memory", "cpython", "capture", "classify", "evidence", "errors")}
    found[name] = Module(name, source)
    assert violations(found) == [sentence]


def test_a_breach_through_others_is_caught() -> None:
    """capture must not reach classify by way of a module that may import it."""
    found = {
        "capture": Module("capture", "from . import command", is_package=True),
        "capture.command": Module("capture.command", "from ..pipeline import diagnose"),
        "pipeline": Module("pipeline", "from .classify.engine import classify"),
        "classify.engine": Module("classify.engine", ""),
    }
    assert violations(found) == ["capture reaches classify through pipeline"]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("classify.engine", "from ..evidence import Evidence\nfrom . import pattern"),
        ("cpython.frames", "import struct\nfrom ..memory.base import Memory"),
        ("capture.command", "import subprocess"),
        ("cli", "import click"),
        ("signalling", "import os\nos.kill(1, 9)"),
        ("cores.codecs", "process.kill()"),
    ],
)
def test_what_is_allowed_passes(name: str, source: str) -> None:
    """The check does not cry wolf."""
    found = {part: Module(part, "") for part in ("memory", "memory.base", "evidence", "classify", "classify.pattern")}
    found[name] = Module(name, source)
    assert violations(found) == []


def test_later_grammar_is_refused() -> None:
    """A match statement does not parse as Python 3.8."""
    with pytest.raises(SyntaxError):
        Module("x", "match 1:\n    case 1: pass")
