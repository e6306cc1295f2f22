"""docs/recipes.md as what it says: files by name, and commands by section."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

from .capturing import ROOT

DOCUMENT = ROOT / "docs" / "recipes.md"
#: Files name themselves in their first line.
_NAME = re.compile(r"# (?:kubernetes: )?((?:[\w.-]+/)*[\w.-]*\.[\w-]+|tools/BUILD|Makefile)$")


class Block(NamedTuple):
    """``file``: the name that its first line gives it; None for commands."""

    section: str
    language: str
    text: str
    file: Optional[str]


def blocks() -> List[Block]:
    """Of the whole document, in order. ``section``: the nearest heading, in lower case."""
    found: List[Block] = []
    section, language, lines = "", None, []
    for line in DOCUMENT.read_text("utf-8").splitlines():
        if line.startswith("```"):
            if language is None:
                language, lines = line[3:], []
                continue
            name = _NAME.match(lines[0]) if lines else None
            found.append(Block(section, language, "\n".join(lines) + "\n", name.group(1) if name else None))
            language = None
        elif language is not None:
            lines.append(line)
        elif line.startswith("#"):
            section = line.lstrip("# ").lower()
    return found


def files(section: str) -> Dict[str, str]:
    return {block.file: block.text for block in blocks() if block.section == section and block.file is not None}


def commands(section: str) -> List[str]:
    """The blocks of commands of a section."""
    return [block.text for block in blocks() if block.section == section and block.file is None]


def lay_out(folder: Path, section: str, **changes: str) -> None:
    """Writes the files of a section, and the test that hangs; ``changes``: times of the document → shorter ones."""
    for name, text in {**files("recipes: ci, test runners, services, containers"), **files(section)}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        changed = shorter(text)
        for before, after in changes.items():
            assert before in changed or name == "test_orders.py", f"{name} does not say {before!r}"
            changed = changed.replace(before, after)
        path.write_text(changed)


def shorter(text: str) -> str:
    """Ten minutes are too long for a test."""
    return text.replace("10m", "1")
