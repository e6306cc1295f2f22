"""Takes the recording machine's folders out of evidence: the program lies in /app, Python in /python, a venv in /venv.

Numbers stay: process ids, addresses and counters are what the rules see.
"""

from __future__ import annotations

import json
import re
from typing import Any, Mapping

# Where pyenv compiled an interpreter, as its debug information has it.
_BUILD = re.compile(r"/tmp/python-build\.[^/]*")


def scrub(evidence: bytes, folders: Mapping[str, str]) -> bytes:
    """The same JSON with each folder replaced wherever a string or a key holds it; the longest first.

    The folder in which pyenv compiled an interpreter becomes /build, and every control group /: how the machine names
    them is its own affair.

    ``folders``: absolute path → its new name.
    """
    order = sorted(folders.items(), key=lambda item: len(item[0]), reverse=True)

    def text(value: str) -> str:
        for old, new in order:
            value = value.replace(old, new)
        return _BUILD.sub("/build", value)

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return text(value)
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, dict):
            return {text(key): walk(_without_path(item) if key == "cgroup" else item) for key, item in value.items()}
        return value

    return json.dumps(walk(json.loads(evidence)), ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _without_path(group: Any) -> Any:
    return {**group, "path": "/"} if isinstance(group, dict) else group
