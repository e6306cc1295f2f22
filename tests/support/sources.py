"""Read the package's sources: modules, and what each imports."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Collection, Dict, Iterator, List, Set

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "postmortem"


class Module:
    """One source file: its dotted name below the package and what it imports, wherever in the file that stands."""

    def __init__(self, name: str, source: str, is_package: bool = False) -> None:
        self.name = name
        self.tree = ast.parse(source, feature_version=(3, 8))
        package = name.split(".") if is_package else name.split(".")[:-1]
        if name == "":
            package = []
        self.package = package
        self.imports = set(imports_of(self.tree, package))

    def depends_on(self, known: Collection[str]) -> Set[str]:
        """The modules among ``known`` that it imports. ``from . import x`` means x where that is a module, not its package."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                base = _base(node, self.package)
                if base.split(".")[0] == "postmortem":
                    below = base[len("postmortem.") :]
                    found |= {n if n in known else below for n in (f"{below}.{a.name}".lstrip(".") for a in node.names)}
        return {name for name in found & set(known) if name not in ("", self.name)}

    @property
    def part(self) -> str:
        """Return the top-level package or module it belongs to."""
        return self.name.split(".")[0]

    @property
    def ours(self) -> Set[str]:
        """Modules of the package that it imports, below the package: `memory.elf`."""
        return {name[len("postmortem") :].lstrip(".") for name in self.imports if name.split(".")[0] == "postmortem"}

    @property
    def others(self) -> Set[str]:
        """Return the top-level names that it imports from elsewhere."""
        return {name.split(".")[0] for name in self.imports} - {"postmortem", "__future__"}


def imports_of(tree: ast.AST, package: List[str]) -> Iterator[str]:
    """Yield the dotted name of everything imported in ``tree``, relative imports resolved below ``package``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            if node.level:
                # `from . import report` names a module, `from .report import x` may name either: both are given.
                yield from (f"{base}.{alias.name}" for alias in node.names)
            yield base


def _base(node: ast.ImportFrom, package: List[str]) -> str:
    """What stands behind ``from``, in full."""
    if not node.level:
        return node.module or ""
    return ".".join(filter(None, [*["postmortem", *package][: len(package) + 2 - node.level], node.module]))


@functools.lru_cache(maxsize=None)
def modules() -> Dict[str, Module]:
    """Return every module of the package by its dotted name below the package; read once, and not to be changed."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "_shipped" in path.parts:
            continue
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(name, path.read_text("utf-8"), is_package)
    return found


def imports_of_test(path: Path) -> Set[str]:
    """Return the dotted names that a file below tests/ imports."""
    package = ["tests", *path.relative_to(ROOT / "tests").parent.parts]
    found: Set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"), feature_version=(3, 8))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found
