"""Writes docs/patterns/ from the patterns.

    python -m tools.docs

A test compares the folder with what this would write (tests/unit/test_docs.py).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Dict

from postmortem.classify.engine import all_patterns
from postmortem.cli import pages

from . import folders

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "patterns"


def wanted() -> Dict[str, str]:
    """File name → its text."""
    rules = all_patterns()
    known = [rule.id for rule in rules]
    return {"README.md": pages.index(rules), **{f"{rule.id}.md": pages.markdown(rule, known) for rule in rules}}


def present(folder: Path = FOLDER) -> Dict[str, str]:
    return folders.present(folder, "*.md")


def main(folder: Path = FOLDER) -> int:
    return folders.write(folder, "*.md", wanted())


if __name__ == "__main__":
    sys.exit(main())
