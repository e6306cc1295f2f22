"""Writes docs/patterns/ from the patterns.

    python -m tools.docs

A test compares the folder with what this would write (tests/unit/test_docs.py).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Dict

from postmortem import pages
from postmortem.classify.engine import all_patterns

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "patterns"


def wanted() -> Dict[str, str]:
    """File name → its text."""
    rules = all_patterns()
    known = [rule.id for rule in rules]
    return {"README.md": pages.index(rules), **{f"{rule.id}.md": pages.markdown(rule, known) for rule in rules}}


def present(folder: Path = FOLDER) -> Dict[str, str]:
    return {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.md"))}


def main(folder: Path = FOLDER) -> int:
    new, old = wanted(), present(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in old.keys() - new.keys():
        (folder / name).unlink()
    changed = sorted(name for name, text in new.items() if old.get(name) != text)
    for name in changed:
        (folder / name).write_text(new[name], "utf-8")
    print(f"{folder.name}: {len(changed)} of {len(new)} pages written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
