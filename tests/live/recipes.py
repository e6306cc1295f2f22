"""docs/recipes.md as what it says: files by name, and commands by section; and what running them needs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from postmortem.capture import options

from ..support.capturing import HANG_S, ROOT

DOCUMENT = ROOT / "docs" / "recipes.md"
#: Files name themselves in their first line.
_NAME = re.compile(r"# (?:kubernetes: )?((?:[\w.-]+/)*[\w.-]*\.[\w-]+|tools/BUILD|Makefile)$")
#: In the memory of a program, and nowhere else.
SECRET = "in-memory-only"


class Block(NamedTuple):
    """``file``: the name that its first line gives it; None for commands."""

    section: str
    language: str
    text: str
    file: Optional[str]


def blocks() -> List[Block]:
    """Return the blocks of the whole document, in order. ``section``: the nearest heading, in lower case."""
    found: List[Block] = []
    section, language = "", None
    lines: List[str] = []
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


# ---------------------------------------------------------------------- run


def environment(**changes: str) -> Dict[str, str]:
    """postmortem on PATH, as the document has it, and nothing of the CI that runs this."""
    ours = {
        key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "POSTMORTEM_DIR", "PYTHON"))
    }
    return {**ours, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **changes}


def shell(folder: Path, script: str, timeout: float = HANG_S, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=folder,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def bundles(folder: Path) -> List[Path]:
    return [path.parent for path in sorted(folder.rglob("manifest.json"))]


def verdict(folder: Path) -> str:
    """Return the verdict of the only bundle below a folder."""
    (bundle,) = bundles(folder)
    report: Dict[str, Any] = json.loads((bundle / "report.json").read_bytes())
    return str(report["verdict"])


def words_of(script: str) -> List[List[str]]:
    """The words of every `postmortem capture` in a script, checked by the parser that will read them."""
    found = []
    for text in re.findall(r"postmortem capture ([^|;&\n]*)", script.replace("\\\n", " ")):
        words = shlex.split(text if text.count("'") % 2 == 0 else text.rstrip("' "))
        numbers = [
            "1" if word.startswith("$") and before in ("--pid", "-t") else word
            for before, word in zip(["", *words], words)
        ]
        options.parse(numbers)
        found.append(words)
    return found


def hung(folder: Path) -> str:
    """A program with a secret in its memory alone, that hangs and does not end with TERM."""
    code = "import signal, threading\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    code += f"kept = '-'.join(reversed({SECRET.split('-')[::-1]!r}))\nlock = threading.Lock()\n"
    code += "print('up', flush=True)\nwith lock:\n    with lock:\n        pass\n"
    (folder / "program.py").write_text(code)
    return "program.py"


def published(folder: Path) -> Dict[str, bytes]:
    """Every file that is uploaded, those inside of archives too."""
    found = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for path in folder.rglob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            found.update({f"{path.name}/{name}": archive.read(name) for name in archive.namelist()})
    return found
