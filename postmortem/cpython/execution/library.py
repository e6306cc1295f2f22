"""Data shared by the evaluations of one process: decoded code, functions, modules, and functions not worth following."""

from __future__ import annotations

import re
from typing import Dict, Mapping

from ...timelimits import TimeLimit
from ..frames.frame import Frames
from ..frames.functions import Functions as Callables
from ..objects.code import Code
from .functions import Functions
from .instructions import Instructions
from .values import Heap

#: Calls inside calls, code objects and instructions that one evaluation follows; its time limit most often ends it first.
MAX_DEPTH, MAX_CODES, MAX_STEPS = 40, 1000, 200_000
#: Parts of the standard library that work on the data handed to them and end nobody's wait; callables among that data are
#: followed all the same. Without the folders of the library, up to its lib/python3.X.
_LEAVES = frozenset((
    "_collections_abc", "_weakrefset", "abc", "argparse", "ast", "base64", "bisect", "calendar", "cgi", "codecs",
    "colorsys", "configparser", "copy", "copyreg", "csv", "ctypes", "dataclasses", "datetime", "_pydatetime", "decimal",
    "_pydecimal", "difflib", "dis", "email", "encodings", "enum", "fnmatch", "fractions", "genericpath", "getpass",
    "gettext", "glob", "hashlib", "hmac", "html", "importlib", "inspect", "io", "ipaddress", "json", "keyword", "linecache",
    "locale", "mimetypes", "ntpath", "numbers", "opcode", "operator", "os", "pathlib", "pickle", "platform", "posixpath",
    "pprint", "quopri", "random", "re", "reprlib", "secrets", "shlex", "shutil", "signal", "sre_compile", "sre_parse",
    "stat", "statistics", "string", "stringprep", "struct", "sysconfig", "tempfile", "textwrap", "token", "tokenize",
    "traceback", "types", "typing", "unicodedata", "urllib", "uuid", "warnings", "weakref", "xml", "zipfile", "_colorize",
))  # fmt: skip
#: Functions not worth following in modules that are otherwise followed: they make and write texts.
_QUIET = {
    "/asyncio/base_events.py": frozenset(("default_exception_handler",)),
    "/logging/__init__.py": frozenset((
        "makeRecord", "findCaller", "format", "formatException", "formatStack", "formatTime", "handleError", "getMessage",
    )),
}  # fmt: skip
_TEXTS = ("/asyncio/format_helpers.py", "/asyncio/base_futures.py", "/asyncio/base_tasks.py")
_LIBRARY = re.compile(r"/lib(?:64)?/python3\.\d+t?/(\w+)(?:/|\.py$)")


def is_leaf(code: Code) -> bool:
    """Return whether a function is of a part of the standard library that ends no wait."""
    found = _LIBRARY.search(code.filename)
    if found is None:
        return code.filename.startswith("<frozen ")
    quiet = next((names for file, names in _QUIET.items() if code.filename.endswith(file)), ())
    return found.group(1) in _LEAVES or code.name in quiet or code.filename.endswith(_TEXTS)


class Limits:
    """Limits of one evaluation: its time, functions and instructions."""

    def __init__(self, time: TimeLimit, codes: int = MAX_CODES, steps: int = MAX_STEPS) -> None:
        self.time = time
        self.codes = codes
        self.steps = steps

    def step(self) -> bool:
        """Count an instruction; False beyond the limits."""
        self.steps -= 1
        return self.steps > 0 and (self.steps & 255 != 0 or not self.time.passed())


class Library:
    """Data shared by evaluations: decoded code, functions, and the namespaces of modules by name."""

    def __init__(self, frames: Frames, modules: Mapping[str, int]) -> None:
        self.frames = frames
        self.heap = Heap(frames.objects)
        self.instructions = Instructions(frames.objects)
        self.functions = Functions(self.heap, frames)
        self.callables = Callables(frames)
        self.modules = modules
        self._leaves: Dict[int, bool] = {}
        self._standard: Dict[int, bool] = {}

    def is_leaf(self, code: Code) -> bool:
        """Return ``is_leaf``, cached."""
        if code.address not in self._leaves:
            self._leaves[code.address] = is_leaf(code)
        return self._leaves[code.address]

    def is_standard(self, code: Code) -> bool:
        """Return whether a function is of the standard library, cached."""
        if code.address not in self._standard:
            self._standard[code.address] = _LIBRARY.search(code.filename) is not None
        return self._standard[code.address]
