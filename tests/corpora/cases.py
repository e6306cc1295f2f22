"""The labelled programs of ``corpora/``: ``corpora/<pattern>/<case>/`` with program.py, case.toml, evidence.json.

What no program can stage on demand has an ``evidence.py`` beside it, whose ``evidence()`` makes what a capture would show.

A trailing ``# CULPRIT`` in a program marks a line to change. It is taken off when the program is copied to be
run (line numbers stay), so that no label is ever in reach of the tool.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Tuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2] / "corpora"
KINDS = ("hang", "healthy", "unknown")
#: Of positives: the fault alone; in layers and classes, as real code is; in, or in the use of, a library.
GUISES = ("plain", "buried", "library")
#: A live tree under ``capture``; a core that a fatal signal left; evidence that is written by hand.
RECORDS = ("capture", "core", "synthesised")
MARKER = re.compile(r"[ \t]*# CULPRIT[ \t]*$", re.M)

_KEPT_BACK = ("case.toml", "evidence.json", "evidence.py")  # the answers
_TYPES: Dict[str, Tuple[type, ...]] = {"str": (str,), "Optional[str]": (str,), "float": (int, float), "bool": (bool,)}
_LOOPS = (ast.While, ast.For, ast.AsyncFor)


@dataclass(frozen=True)
class Case:
    """One label. The fields down to ``recorded_with`` are the keys of case.toml."""

    folder: Path
    title: str
    kind: str
    source: str
    note: str
    pythons: Tuple[str, ...]
    verdict: Tuple[str, ...] = ()  # accepted leading patterns
    also: Tuple[str, ...] = ()  # patterns that are true as well, but do not lead
    must_not: Tuple[str, ...] = ()  # patterns that must not stand above *possible*
    confusable_with: Tuple[str, ...] = ()  # patterns of which this is a negative
    proven: bool = False  # an expert would call it proven
    requirements: Tuple[str, ...] = ()
    timeout: float = 2.0  # seconds, for capture -t
    args: Tuple[str, ...] = ()
    peer: Optional[str] = None  # a program run outside the tree; the address it prints becomes the last argument
    culprit_elsewhere: Tuple[str, ...] = ()  # "file.py:line"
    guise: Optional[str] = None  # of GUISES
    blind: bool = False  # written from the descriptions of the patterns alone, before the rule that finds it
    signal: Optional[str] = None  # of a core: what is sent to the program after ``timeout``; else it ends by itself
    within: Tuple[str, ...] = ()  # surroundings: see staging.py
    record: str = "capture"  # of RECORDS
    recorded_with: str = "3.12"

    @property
    def name(self) -> str:
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def program(self) -> Path:
        return self.folder / "program.py"

    @property
    def evidence(self) -> Path:
        return self.folder / "evidence.json"

    def culprits(self) -> Dict[str, FrozenSet[int]]:
        """File name → lines of the marked statements. Files elsewhere go by the end of their path."""
        found = {path.name: culprit_lines(path.read_text("utf-8")) for path in self.files() if path.suffix == ".py"}
        for place in self.culprit_elsewhere:
            name, _, line = place.rpartition(":")
            found[name] = found.get(name, frozenset()) | {int(line)}
        return {name: lines for name, lines in found.items() if lines}

    def is_culprit(self, file: str, line: Optional[int]) -> bool:
        """Whether a line of a diagnosis is a marked one; ``file`` is the path that the interpreter held."""
        path = "/" + file.replace("\\", "/")
        return any(path.endswith("/" + name) and line in lines for name, lines in self.culprits().items())

    def files(self) -> List[Path]:
        """What the program consists of: neither the answers nor the peer."""
        out = (*_KEPT_BACK, self.peer)
        return sorted(path for path in self.folder.iterdir() if path.is_file() and path.name not in out and not path.match("twin-*.json"))

    def copy_to(self, folder: Path) -> None:
        for path in self.files():
            text = path.read_text("utf-8")
            (folder / path.name).write_text(MARKER.sub("", text) if path.suffix == ".py" else text, "utf-8")


def load(path: Path) -> Case:
    """The case of a case.toml. Raises ValueError for a missing, unknown or ill-typed key, KeyError without [case]."""
    table: Dict[str, Any] = tomllib.loads(path.read_text("utf-8"))["case"]
    known = {field.name: field for field in fields(Case) if field.name != "folder"}
    unknown = set(table) - set(known)
    if unknown:
        raise ValueError(f"{path}: unknown keys {sorted(unknown)}")
    for key, value in table.items():
        words = not isinstance(value, list) or all(isinstance(item, str) for item in value)  # 3.10 is no number
        if not words or not isinstance(value, _TYPES.get(str(known[key].type), (list,))):
            raise ValueError(f"{path}: {key} is a {type(value).__name__}")
    values: Dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    pythons = values.get("pythons", ())
    if "recorded_with" not in values and pythons:
        values["recorded_with"] = Case.recorded_with if Case.recorded_with in pythons else pythons[-1]
    try:
        return Case(path.parent, **values)
    except TypeError as exc:
        raise ValueError(f"{path}: {exc}") from exc


def all_cases() -> List[Case]:
    """Every case, by name."""
    return [load(path) for path in sorted(ROOT.glob("*/*/case.toml"))]


def culprit_lines(source: str) -> FrozenSet[int]:
    """The lines of the statements that a marker stands in.

    A marked loop counts with its body, because the CPU is spent anywhere in it; of other compound statements only
    the header counts: what lies inside a `with` is another place.
    """
    marked = [number for number, text in enumerate(source.splitlines(), 1) if MARKER.search(text)]
    if not marked:
        return frozenset()
    spans = list(_spans(ast.parse(source)))
    lines = set(marked)
    for number in marked:
        around = [span for span in spans if span[0] <= number <= span[1]]
        if around:
            first, last = min(around, key=lambda span: span[1] - span[0])
            lines.update(range(first, last + 1))
    return frozenset(lines)


def _spans(tree: ast.AST) -> Iterator[Tuple[int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            last = node.end_lineno or node.lineno
            body = getattr(node, "body", None)
            if body and not isinstance(node, _LOOPS):
                last = max(node.lineno, body[0].lineno - 1)
            yield node.lineno, last
