"""A seed → a damaged input: its kind, the clean one, what is done to which of its files."""

from __future__ import annotations

import random
from typing import List, Tuple

from . import archives, nodes, octets, texts, values
from .clean import Clean, zip_files
from .inputs import Input

#: Kind of input → how likely.
KINDS = {
    "evidence": 34,
    "raw": 22,
    "whole": 6,
    "cores": 4,
    "zip": 12,
    "apport": 6,
    "abrt": 5,
    "journal": 6,
    "compressed": 5,
}

#: What the fake journalctl prints: no file that postmortem opens.
_PRINTED = ("journal", "journal-core")


def damaged(clean: Clean, seed: int) -> Input:
    """The same seed and clean inputs give the same damage."""
    rng = random.Random(seed)
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    given = clean.input(kind, rng.randrange(1 << 20))
    if kind == "zip":
        return _archive(given, rng)
    for _ in range(rng.choices((1, 2, 4), (7, 2, 1))[0]):
        given = _once(given, rng)
    return given


def _archive(given: Input, rng: random.Random) -> Input:
    """One with a file inside damaged, or damaged itself."""
    target, files = given.target, zip_files(given)
    if rng.random() < 0.3:
        name = rng.choice(sorted(files))
        files[name], said = _content(name, files[name], rng)
        data = archives.written([archives.entry(*one) for one in files.items()])
        said = f"inside {name}: {said}"
    else:
        data, said = archives.damaged(files, rng)
    if rng.random() < 0.2:
        data, more = octets.damaged(data, rng)
        said += f"; the archive: {more}"
    given = Input("zip", target, {}, [said]).with_file(target, data)
    return given if rng.random() < 0.97 else _replaced(given, target, rng)


def _once(given: Input, rng: random.Random) -> Input:
    files = given.files()
    if not files:
        return given
    name = rng.choice(_weighed(files, given.kind))
    if name not in _PRINTED and rng.random() < (0.08 if given.kind == "evidence" else 0.2):
        return _replaced(given, name, rng)
    data, said = _content(name, given.nodes[name].data, rng)
    return given._replace(said=[*given.said, f"{name}: {said}"]).with_file(name, data)


def _replaced(given: Input, name: str, rng: random.Random) -> Input:
    made, said = nodes.damaged(given, name, rng)
    return made._replace(said=[*made.said, said])


def _weighed(files: List[str], kind: str) -> List[str]:
    """What says most is damaged most."""
    heavy = (
        ("evidence.json",) if kind in ("evidence", "whole") else ("process.json", "window.json", ".chrometrace.json")
    )
    return [*files, *(name for name in files for _ in range(5) if name.endswith(heavy))]


def _content(name: str, data: bytes, rng: random.Random) -> Tuple[bytes, str]:
    if name.endswith(".json") and rng.random() < 0.85:
        return values.damaged(data, rng)
    if name.endswith(".crash") and rng.random() < 0.7:
        return texts.lines(data, rng)
    if name in ("journal", "journal-core") and rng.random() < 0.7:
        return texts.lines(data, rng)
    if name.startswith("ccpp/") and not name.startswith("ccpp/coredump") and rng.random() < 0.7:
        return texts.value(rng), "another value"
    return octets.damaged(data, rng)
