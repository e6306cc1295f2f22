"""Folders of pages that are made: what changed is written, what is no more is removed."""

from __future__ import annotations

from pathlib import Path
from typing import Dict


def present(folder: Path, pattern: str) -> Dict[str, str]:
    """File name → its text."""
    return {path.name: path.read_text("utf-8") for path in sorted(folder.glob(pattern))}


def write(folder: Path, pattern: str, new: Dict[str, str]) -> int:
    """Makes the files of ``pattern`` those of ``new``, and says how many it wrote; 0, an exit status."""
    old = present(folder, pattern)
    folder.mkdir(parents=True, exist_ok=True)
    for name in old.keys() - new.keys():
        (folder / name).unlink()
    changed = sorted(name for name, text in new.items() if old.get(name) != text)
    for name in changed:
        (folder / name).write_text(new[name], "utf-8")
    print(f"{folder.name}: {len(changed)} of {len(new)} pages written")
    return 0
