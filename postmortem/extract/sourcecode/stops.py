"""Places in a program's sources that send a signal which stops a process.

The kernel does not record a signal's sender, so these are the best evidence. Searched are the files on the stacks, and
the main program with the modules that it imported: a supervisor made of greenlets is on no stack.
"""

from __future__ import annotations

import ast
from typing import Iterable, Iterator, List, Optional, Set, Tuple

from ...cpython.objects.builtins import NotThat
from ...cpython.runtime import layouts as L
from ...cpython.state.interpreter import Python
from ...evidence import PythonFrame
from ...memory import Fault
from ...sourcepaths import is_program
from .scripts import import_path
from .usages import Usages, nodes

_MOST_FILES, _MOST_PLACES, _MOST_VALUES, _MOST_DIRECTORIES = 40, 8, 1000, 10
_SIGNALS = frozenset(("SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"))
#: Options of kill(1) and pkill(1). (A plain "STOP" is common in queues.)
_OPTIONS = frozenset(("-STOP", "-SIGSTOP", "-TSTP", "-SIGTSTP"))
#: Files without any of these are not parsed.
_WORDS = ("STOP", "SIGTSTP", "SIGTT", ".suspend(")
#: Functions that receive a signal's number without sending it.
_HANDLES = frozenset((
    "signal", "getsignal", "siginterrupt", "add_signal_handler", "remove_signal_handler", "pthread_sigmask", "sigwait",
    "sigwaitinfo", "sigtimedwait", "print", "Signals",
))  # fmt: skip


def stops(usages: Usages, files: Iterable[str], python: Optional[Python]) -> Tuple[PythonFrame, ...]:
    """Return the places, in the order of the files."""
    found: List[PythonFrame] = []
    wanted = [*files, *(_main_files(python, usages) if python is not None else ())]
    for file in list(dict.fromkeys(file for file in wanted if is_program(file)))[:_MOST_FILES]:
        if any(word in text for text in usages.lines(file) for word in _WORDS):
            tree = usages.tree(file)
            found += _places(file, tree) if tree is not None else ()
    return tuple(dict.fromkeys(found))[:_MOST_PLACES]


def _places(file: str, tree: ast.Module) -> Iterator[PythonFrame]:
    handled: Set[int] = set()
    for node, function in nodes(tree):  # outer ones first
        if isinstance(node, ast.Call):
            if _is_suspend(node):
                yield PythonFrame(file, getattr(node, "lineno", None), function)
            elif _handles(node):
                handled.update(map(id, ast.walk(node)))
            elif any(_is_signal(argument) for argument in node.args):
                handled.update(map(id, node.args))
                yield PythonFrame(file, getattr(node, "lineno", None), function)
        elif isinstance(node, ast.Compare):
            handled.update(map(id, ast.walk(node)))
        elif id(node) not in handled and _is_signal(node):
            yield PythonFrame(file, getattr(node, "lineno", None), function)


def _is_suspend(call: ast.Call) -> bool:
    """Return whether a call is psutil's ``Process.suspend()``."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "suspend" and not call.args


def _handles(call: ast.Call) -> bool:
    """Return whether a call handles a signal; a method named ``signal`` with one argument sends it."""
    name = _name(call.func)
    return name in _HANDLES and (name != "signal" or len(call.args) > 1)


def _is_signal(node: ast.AST) -> bool:
    """Return whether a node names a stop signal: ``signal.SIGSTOP``, or ``"-STOP"`` of a command line."""
    if isinstance(node, (ast.Attribute, ast.Name)):
        return isinstance(node.ctx, ast.Load) and _name(node) in _SIGNALS
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in _OPTIONS


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _main_files(python: Python, usages: Usages) -> List[str]:
    """Return the files of ``__main__`` and of the program's modules that it imported by name."""
    objects = python.objects
    try:
        modules = python.memory.u64(python.interpreters[0].address + python.layout.is_modules)
        main = objects.lookup(modules, "__main__")
        namespace = objects.field(main, L.MODULE_DICT) if main else 0
        values = list(objects.text_dict(namespace).values())[:_MOST_VALUES] if namespace else []
    except (Fault, NotThat, IndexError):
        return []
    named = [_file(python, module) for module in (main, *values) if module]
    return [_found(python, usages, file) for file in named if file is not None and is_program(file)]


def _file(python: Python, value: int) -> Optional[str]:
    """Return a module's file; None for anything else."""
    objects = python.objects
    try:
        if objects.type_name(value) != "module":
            return None
        return objects.optional_text(objects.lookup(objects.field(value, L.MODULE_DICT), "__file__") or 0)
    except (Fault, NotThat):
        return None


def _found(python: Python, usages: Usages, file: str) -> str:
    """Return a file's path; up to Python 3.8 the script's is relative and searched on ``sys.path``."""
    if file.startswith("/") or usages.lines(file):
        return file
    paths = (f"{directory}/{file}" for directory in import_path(python)[:_MOST_DIRECTORIES])
    return next((path for path in paths if usages.lines(path)), file)
