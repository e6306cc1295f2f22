"""Calls that open, list, make, remove or resolve files, or start programs: found in the sources, matched to audit events.

`postmortem/foreign` alone opens what others made. Every other such call stands in `tests/allowed.py`, with a reason.
"""

# Long tables of names are read more easily as text:
# ruff: noqa: SIM905

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Dict, Iterator, Optional, Set, Tuple

ROOT = Path(__file__).resolve().parents[1]
FOREIGN = "foreign"

_OS = """access chdir chmod chown execl execle execlp execlpe execv execve execvp execvpe fwalk getxattr lchown link listdir
listxattr lstat makedirs mkdir mkfifo mknod open popen posix_spawn posix_spawnp readlink remove removedirs removexattr rename
renames replace rmdir scandir setxattr spawnl spawnv spawnve stat startfile statvfs symlink system truncate unlink utime
walk""".split()
_OS_PATH = "exists getatime getmtime getsize isdir isfile islink ismount lexists realpath samefile".split()
_PATHS = """exists glob hardlink_to is_block_device is_char_device is_dir is_fifo is_file is_mount is_socket is_symlink
iterdir lchmod link_to lstat mkdir open read_bytes read_text readlink rename replace resolve rglob rmdir samefile stat
symlink_to touch unlink write_bytes write_text chmod""".split()

#: Functions of the standard library, by their full names; ``module.*``: all that are called of it.
FUNCTIONS: Set[str] = {
    *("open", "io.open", "io.open_code", "codecs.open", "mmap.mmap"),
    *("zipfile.ZipFile", "zipfile.is_zipfile", "tarfile.open", "gzip.open", "bz2.open", "lzma.open"),
    *("xml.etree.ElementTree.parse", "sqlite3.connect", "importlib.resources.open_text"),
    *(f"os.{name}" for name in _OS),
    *(f"os.path.{name}" for name in _OS_PATH),
    *(
        "shutil.*",
        "tempfile.*",
        "glob.*",
        "linecache.*",
        "fileinput.*",
        "dbm.*",
        "pkgutil.*",
        "shelve.*",
        "tomllib.load",
        "runpy.*",
    ),
    *("subprocess.Popen", "subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output"),
}
#: Methods of paths, by their bare names, whatever they are called on.
METHODS: Set[str] = {f".{name}" for name in _PATHS}
#: Classes whose methods count by their bare names.
_CLASSES = {"pathlib.Path", "pathlib.PosixPath"}
#: Classes that annotations name as well: only calls of them count.
_TYPES = {"mmap.mmap", "subprocess.Popen", "zipfile.ZipFile"}
#: No file is opened by these.
HARMLESS = {"tempfile.gettempdir", "shutil.get_terminal_size"}

_OPENING = ("open", "os.open", "io.open", ".open", ".read_bytes", ".read_text", ".write_bytes", ".write_text", ".touch")
_STARTING = ("subprocess.", "os.posix_spawn", "os.exec", "os.spawn", "os.system", "os.popen")
#: Audit event → beginnings of the calls that may cause it.
EVENTS: Dict[str, Tuple[str, ...]] = {
    "open": (
        *_OPENING,
        "tempfile.",
        "zipfile.",
        "shutil.copy",
        "shutil.move",
        "tarfile.",
        "gzip.",
        "bz2.",
        "lzma.",
        "subprocess.",
    ),
    "os.listdir": ("os.listdir", "pkgutil.", ".iterdir", ".glob", ".rglob", "glob."),
    "os.scandir": ("os.scandir", "os.walk", ".iterdir", ".glob", ".rglob", "glob.", "shutil.rmtree"),
    "os.mkdir": ("os.mkdir", "os.makedirs", ".mkdir", "tempfile.mkdtemp", "tempfile.TemporaryDirectory"),
    "os.rename": ("os.rename", "os.replace", ".rename", ".replace", "shutil.move"),
    "os.remove": ("os.remove", "os.unlink", ".unlink", "shutil.rmtree", "tempfile."),
    "os.rmdir": ("os.rmdir", ".rmdir", "shutil.rmtree", "tempfile."),
    "os.link": ("os.link", ".hardlink_to", ".link_to"),
    "os.symlink": ("os.symlink", ".symlink_to"),
    "os.chmod": ("os.chmod", ".chmod", ".lchmod", "tempfile."),
    "os.chown": ("os.chown", "os.lchown"),
    "os.truncate": ("os.truncate",),
    "os.utime": ("os.utime", ".touch"),
    "os.chdir": ("os.chdir",),
    "mmap.__new__": ("mmap.mmap",),
    "glob.glob": ("glob.", ".glob", ".rglob"),
    "shutil.copyfile": ("shutil.",),
    "shutil.move": ("shutil.",),
    "shutil.rmtree": ("shutil.rmtree", "tempfile.TemporaryDirectory"),
    "shutil.make_archive": ("shutil.",),
    "shutil.unpack_archive": ("shutil.",),
    "tempfile.mkstemp": ("tempfile.",),
    "tempfile.mkdtemp": ("tempfile.",),
    "sqlite3.connect": ("sqlite3.",),
    "subprocess.Popen": _STARTING,
    "os.posix_spawn": _STARTING,
    "os.exec": _STARTING,
    "os.system": _STARTING,
}


def calls(tree: ast.AST) -> Iterator[Tuple[str, int]]:
    """(call, line) of every such call of a module, and of every mention of such a function that is handed on."""
    names = _imported(tree)
    called = {id(node.func): len(node.args) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Attribute, ast.Name)) or not isinstance(node.ctx, ast.Load):
            continue
        full = _full_name(node, names)
        if full is not None:
            if _counts(full) and (id(node) in called or full not in _TYPES):
                yield full, node.lineno
        elif isinstance(node, ast.Attribute) and id(node) in called and _is_a_paths(node, called[id(node)], names):
            yield f".{node.attr}", node.lineno


def _counts(name: str) -> bool:
    module, _, _last = name.rpartition(".")
    return name not in HARMLESS and (name in FUNCTIONS or (bool(module) and f"{module}.*" in FUNCTIONS))


def _imported(tree: ast.AST) -> Dict[str, str]:
    """Local name → full name, wherever in the module it is imported; what is ours begins with a dot."""
    found: Dict[str, str] = {"open": "open"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            base = "." if node.level or (node.module or "").startswith("postmortem") else f"{node.module}."
            for alias in node.names:
                found[alias.asname or alias.name] = f"{base}{alias.name}"
        elif isinstance(node, ast.ClassDef):
            found.setdefault(node.name, f".{node.name}")
    return found


def _full_name(node: ast.expr, names: Dict[str, str]) -> Optional[str]:
    if isinstance(node, ast.Name):
        full = names.get(node.id)
        return full if full is not None and not full.startswith(".") else None
    if isinstance(node, ast.Attribute):
        base = _full_name(node.value, names)
        return f"{base}.{node.attr}" if base is not None and base not in _CLASSES else None
    return None


def _is_a_paths(node: ast.Attribute, arguments: int, names: Dict[str, str]) -> bool:
    """Whether a method may be a path's. Not those of a module or a class of ours: what they do stands in its own source."""
    ours = isinstance(node.value, ast.Name) and names.get(node.value.id, "").startswith(".")
    a_texts = node.attr == "replace" and arguments != 1
    return f".{node.attr}" in METHODS and not ours and not a_texts


def name_of(path: Path) -> str:
    """``postmortem/capture/procfs/tree.py`` → ``capture.procfs.tree``; ``gdb/engine.py`` → ``gdb:engine``."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return f"gdb:{'.'.join(parts[1:])}" if parts[0] == "gdb" else ".".join(parts[1:])


@functools.lru_cache(maxsize=None)
def found_in_sources() -> Dict[Tuple[str, str], int]:
    """(module, call) → the first line that has it, outside of ``postmortem/foreign``."""
    found: Dict[Tuple[str, str], int] = {}
    for top in ("postmortem", "gdb"):
        for path in sorted((ROOT / top).rglob("*.py")):
            module = name_of(path)
            if "_shipped" in path.parts or module.split(".")[0] == FOREIGN:
                continue
            for call, line in calls(ast.parse(path.read_text("utf-8"))):
                found.setdefault((module, call), line)
    return found


def event_is_allowed(module: str, event: str, allowed: Set[Tuple[str, str]]) -> bool:
    """Whether a module may cause an audit event: `foreign` may, others by a call that they are allowed."""
    if module.split(".", maxsplit=1)[0] == FOREIGN:
        return True
    causes = EVENTS[event]
    return any(owner == module and call.startswith(causes) for owner, call in allowed)
