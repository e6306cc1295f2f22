"""Print the row of ``postmortem/cpython/execution/opcodes.py`` for the interpreter that runs this.

Usage: ``python3.14 tools/opcodes.py``, on any release since 3.8; it needs nothing but the standard library.
"""

from __future__ import annotations

import dis
import opcode
import sys
import textwrap
from typing import Dict, List

_WIDTH = 112


def row() -> str:
    """Return the row: numbers with the names of their plain instructions, and the cache units that follow each."""
    plain: Dict[str, str] = getattr(dis, "deoptmap", {})
    numbers: Dict[str, int] = {**opcode.opmap, **getattr(dis, "_all_opmap", {})}
    caches = getattr(opcode, "_inline_cache_entries", {})
    if isinstance(caches, list):
        caches = {name: caches[number] for name, number in numbers.items() if number < len(caches)}
    found: Dict[int, str] = {}
    for name, number in numbers.items():
        if number > 255:
            continue  # pseudo-instructions of the compiler, which no code object has
        base = plain.get(name, name)
        if base.startswith("INSTRUMENTED_"):
            rest = base[len("INSTRUMENTED_") :]
            base = rest if rest in numbers else base
        count = caches.get(base, 0)
        found[number] = base + (f"+{count}" if count else "")
    words: List[str] = []
    for name in sorted(set(found.values())):
        words.append(name + ":" + ",".join(str(n) for n in sorted(found) if found[n] == name))
    lines = textwrap.wrap(" ".join(words), _WIDTH - 12, break_long_words=False, break_on_hyphens=False)
    quoted = "\n".join(f'        "{line} "' for line in lines)
    return f"    ({sys.version_info[0]}, {sys.version_info[1]}): (\n{quoted}\n    ),"


if __name__ == "__main__":
    print(row())
