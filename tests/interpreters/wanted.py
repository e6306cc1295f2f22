"""The matrix as a table, and where on this machine each of its interpreters is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Tuple

#: Raised when a change of the recipes makes what an older checkout set up unfit.
RECIPE = 1
REMEDY = "make interpreters"


@dataclass(frozen=True)
class Wanted:
    """One interpreter of the matrix, whether or not this machine has it."""

    id: str
    version: Tuple[int, int]
    origin: str  # "pyenv" | "distribution" | "debian-sid" | "built" | "musl"
    program: str  # its file name
    free_threaded: bool = False
    debug: bool = False
    packages: Tuple[str, ...] = ()  # debian-sid: what is unpacked, with all that these depend on
    library: str = ""  # debian-sid: the program is a main() of ours, linked to this
    source: str = ""  # built, musl: Debian's source package and the suite that has it
    optional: bool = False  # the archive may not have it: named when missing, required nowhere

    @property
    def set_up(self) -> bool:
        """Whether ``make interpreters`` makes it; it only looks for the others."""
        return self.origin in ("debian-sid", "built", "musl")

    @property
    def recipe(self) -> str:
        """What a finished set-up is marked with: another recipe's is made anew."""
        return hashlib.sha256(f"{RECIPE} {self!r}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Interpreter:
    """One that this machine has. It stands for its path wherever a path is taken."""

    wanted: Wanted
    path: str

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path

    @property
    def id(self) -> str:
        return self.wanted.id

    @property
    def version(self) -> Tuple[int, int]:
        return self.wanted.version

    @property
    def free_threaded(self) -> bool:
        return self.wanted.free_threaded

    @property
    def debug(self) -> bool:
        return self.wanted.debug

    @property
    def origin(self) -> str:
        return self.wanted.origin


def _pyenv(minor: int) -> Wanted:
    return Wanted(f"3.{minor}", (3, minor), "pyenv", f"python3.{minor}")


def _sid(minor: int, id: str) -> Wanted:
    packages = (f"python3.{minor}-minimal", f"python3.{minor}", f"libpython3.{minor}-stdlib")
    return Wanted(id, (3, minor), "debian-sid", f"python3.{minor}", packages=packages)


def _built(minor: int, suite: str, optional: bool) -> Wanted:
    source = f"python3.{minor}/{suite}"
    name = f"python3.{minor}t"
    return Wanted(f"3.{minor}t", (3, minor), "built", name, free_threaded=True, source=source, optional=optional)


MATRIX: Tuple[Wanted, ...] = (
    *(_pyenv(minor) for minor in range(8, 14)),
    # Static, stripped, built with LTO and PGO: no symbol but what is exported.
    Wanted("3.11-stripped", (3, 11), "distribution", "python3.11"),
    _sid(13, "3.13-stripped"),
    _sid(14, "3.14"),
    Wanted(
        "3.14-shared", (3, 14), "debian-sid", "python3.14-shared",
        packages=("libpython3.14", "libpython3.14-stdlib"), library="libpython3.14.so.1.0",
    ),
    Wanted("3.14-debug", (3, 14), "debian-sid", "python3.14d", debug=True, packages=("python3.14-dbg",)),
    _sid(15, "3.15"),
    _built(13, "trixie", optional=False),
    # No release of Debian has these sources for certain.
    _built(14, "sid", optional=True),
    _built(15, "sid", optional=True),
    Wanted("3.11-musl", (3, 11), "musl", "python3.11", source="python3.11/bookworm"),
)  # fmt: skip
BY_ID: Dict[str, Wanted] = {wanted.id: wanted for wanted in MATRIX}


def home() -> Path:
    """Where set-up interpreters live: outside the tree, so that every checkout shares them."""
    chosen = os.environ.get("POSTMORTEM_INTERPRETERS")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "postmortem" / "interpreters"


def find(wanted: Wanted) -> Optional[Interpreter]:
    """That interpreter if this machine has it, finished and of the present recipe."""
    look = {"pyenv": _find_pyenv, "distribution": _find_distribution}.get(wanted.origin, _find_set_up)
    path = look(wanted)
    return None if path is None else Interpreter(wanted, path)


def stamp(wanted: Wanted) -> Path:
    """The file that marks it as finished: written last, so that an interrupted set-up leaves none."""
    return home() / f"{wanted.id}.json"


def missing(wanted: Wanted) -> str:
    """One sentence: what is not here and how to get it."""
    if wanted.set_up:
        return f"Python {wanted.id} is not set up: run `{REMEDY}`"
    if wanted.origin == "pyenv":
        minor = ".".join(map(str, wanted.version))
        return f"neither pyenv nor PATH has a Python {minor}: run `pyenv install {minor}`, then `{REMEDY}`"
    return f"there is no /usr/bin/{wanted.program}: it comes with the distribution that has it, or not at all"


def required() -> List[str]:
    """Ids that CI must have: all that are set up here, all others that it brought along, and a 3.11 in any case."""
    ids = [wanted.id for wanted in MATRIX if (wanted.set_up and not wanted.optional) or find(wanted)]
    if not {"3.11", "3.11-stripped"} & set(ids):
        ids.append("3.11")
    return ids


def _find_pyenv(wanted: Wanted) -> Optional[str]:
    """pyenv's newest patch release; else what PATH has, unless the distribution's row stands for that."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    minor = ".".join(map(str, wanted.version))
    releases = [f for f in versions.glob(f"{minor}.*") if f.name[len(minor) + 1 :].isdigit()]
    for release in sorted(releases, key=lambda folder: int(folder.name.rsplit(".", 1)[1]), reverse=True):
        if (release / "bin" / "python").exists():
            return str(release / "bin" / "python")
    on_path = shutil.which(wanted.program)
    if on_path is None or _is_shim(Path(on_path)):
        return None
    distributions = {_find_distribution(other) for other in MATRIX if other.origin == "distribution"}
    return None if os.path.realpath(on_path) in distributions else on_path


def _find_distribution(wanted: Wanted) -> Optional[str]:
    path = Path("/usr/bin") / wanted.program
    return str(path) if path.exists() and not path.is_symlink() else None


def _find_set_up(wanted: Wanted) -> Optional[str]:
    try:
        marked = json.loads(stamp(wanted).read_text())
    except (OSError, ValueError):
        return None
    path = str(marked.get("path"))
    return path if marked.get("recipe") == wanted.recipe and os.access(path, os.X_OK) else None


def _is_shim(path: Path) -> bool:
    """pyenv's shims on PATH run whatever version is chosen where they are started, or none."""
    return path.parent.name == "shims"
