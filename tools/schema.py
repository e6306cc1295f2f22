"""Writes the vocabularies of evidence and findings into report.schema.json.

    python -m tools.schema

What is described there stays as it is; the words that a field may have come from its type. A test compares the file with
what this would write (tests/unit/report/machine/test_schema.py).
"""

from __future__ import annotations

import json
import sys
import typing
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple, Type

from postmortem import evidence, findings, waitgraph

PATH = Path(__file__).resolve().parents[1] / "postmortem" / "report" / "machine" / "report.schema.json"

_WIDTH = 116

#: Definition in the schema → the class whose fields it has.
CLASSES: Dict[str, Type[Any]] = {
    "exception": evidence.ThreadException,
    "stretch": evidence.Stretch,
    "native_frame": evidence.NativeFrame,
    "finding": findings.Finding,
    "root": findings.Root,
    "wait": evidence.Wait,
    "held_lock": evidence.HeldLock,
    "thread": evidence.Thread,
    "resource": evidence.Resource,
    "loop": evidence.Loop,
    "task_wait": evidence.TaskWait,
    "pool": evidence.Pool,
    "edge": waitgraph.Edge,
    "task": evidence.Task,
    "rounds": evidence.Rounds,
    "backlog": evidence.Backlog,
    "abort": evidence.Abort,
    "crash": evidence.Crash,
    "origin": evidence.Origin,
}
#: Objects within a definition: (definition, property) → their class.
INNER: Dict[Any, Type[Any]] = {
    ("resource", "ends"): evidence.End,
    ("resource", "wakers"): evidence.Waker,
    ("report", "trigger"): evidence.Trigger,
}


def words(kind: Any) -> Optional[List[Optional[str]]]:
    """The words of a ``Literal``, with None for an optional one; None for a type that is none."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return list(arguments)
    if origin is typing.Union and type(None) in arguments:
        (rest,) = [argument for argument in arguments if argument is not type(None)] or [None]
        found = words(rest)
        return [*found, None] if found is not None else None
    return None


def wanted(schema: Dict[str, Any]) -> Dict[str, Any]:
    """The schema with the words of today's types; changed in place, and returned."""
    for name, cls in CLASSES.items():
        _fill(schema["$defs"][name]["properties"], cls)
    for (name, field), cls in INNER.items():
        inner = schema["$defs"][name]["properties"][field]
        _fill(inner.get("items", inner)["properties"], cls)
    return schema


def _fill(properties: Dict[str, Any], cls: Type[Any]) -> None:
    types = typing.get_type_hints(cls)
    for field, known in properties.items():
        found = words(types[field]) if field in types else None
        if found is not None:
            rest = {key: value for key, value in known.items() if key not in ("type", "enum")}
            known.clear()
            known.update({"enum": found, **rest})


def text(schema: Dict[str, Any]) -> str:
    """As it is written: one line for what fits, but for definitions and their properties."""
    return _lines(schema, 0, ()) + "\n"


def _lines(value: Any, indent: int, path: Tuple[str, ...]) -> str:
    short = json.dumps(value, ensure_ascii=False)
    long = isinstance(value, dict) and (path == () or path[-1] in ("$defs", "properties") or "properties" in value)
    if not isinstance(value, (dict, list)) or (
        not long and indent + len(path[-1] if path else "") + len(short) < _WIDTH
    ):
        return short
    inside, outside = " " * (indent + 2), " " * indent
    if isinstance(value, list):
        return "[\n" + ",\n".join(inside + _lines(item, indent + 2, (*path, "")) for item in value) + f"\n{outside}]"
    rows = (f"{inside}{json.dumps(key)}: {_lines(item, indent + 2, (*path, key))}" for key, item in value.items())
    return "{\n" + ",\n".join(rows) + f"\n{outside}}}"


def main() -> int:
    schema = wanted(json.loads(PATH.read_text("utf-8")))
    PATH.write_text(text(schema), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
