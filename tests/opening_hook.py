"""The audit hook that notes which module opens, lists, makes, renames or removes files, or starts programs.

`tests/conftest.py` copies this file beside the test environment's packages, where a ``.pth`` file imports it into every
interpreter of that environment while the variable is set. It acts in processes of postmortem's and in pytest's own, not in
their targets. Each process writes a line for each module and event that it sees, once; pytest judges them at its end.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Dict, Optional, Set, Tuple

#: ``FILE:PACKAGE:TESTS``: where notes go, the folder of the package, and the folder of the tests.
VARIABLE = "AUDIT_OPENING"
_OURS = (b"postmortem", b"pytest", b"py.test")


def begin() -> None:
    """Install the hook, once, when the variable is set and this is a process of postmortem's."""
    if "_opening_hook.begun" in sys.modules:  # .pth files may be read twice
        return
    sys.modules["_opening_hook.begun"] = sys
    setting = os.environ.get(VARIABLE, "").split(":")
    if len(setting) == 3 and _is_ours():
        install(*setting)


def _is_ours() -> bool:
    """By its command line: ``-m postmortem``, the command itself, or a script on the command line that imports it."""
    try:
        with open("/proc/self/cmdline", "rb") as stream:
            words = stream.read().split(b"\0")[1:]
    except OSError:
        return False
    for at, word in enumerate(words):
        if word == b"-m":
            return words[at + 1].split(b".")[0] in _OURS
        if word == b"-c":
            return b"postmortem" in words[at + 1]
        if not word.startswith(b"-"):
            return word.rsplit(b"/", 1)[-1] in _OURS or b"/postmortem/" in word
    return False


class _Watch:
    """Notes go to ``file``; ``package`` and ``tests`` are the folders of the package and of the tests."""

    def __init__(self, file: str, package: str, tests: str) -> None:
        self._file, self._package, self._tests = file, package, tests
        self._seen: Set[Tuple[str, str]] = set()
        self._modules: Dict[str, Optional[str]] = {}
        self._busy = threading.local()

    def __call__(self, event: str, arguments: Tuple[Any, ...]) -> None:
        if event not in EVENTS or getattr(self._busy, "now", False):
            return
        if arguments and _names_nothing(event, arguments[0]):
            return
        self._busy.now = True
        try:
            self._note(event, arguments)
        except Exception:
            pass
        finally:
            self._busy.now = False

    def _note(self, event: str, arguments: Tuple[Any, ...]) -> None:
        module, line = self._responsible(sys._getframe(2))
        if not module or (module, event) in self._seen:
            return
        self._seen.add((module, event))
        test = os.environ.get("PYTEST_CURRENT_TEST", "")
        words = (module, str(line), event, repr(arguments[:1])[:200], test)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(descriptor, "\t".join(words).encode("utf-8", "replace") + b"\n")
        finally:
            os.close(descriptor)

    def _responsible(self, frame: Any) -> Tuple[str, int]:
        """The innermost module of the package, and its line; "" when tests, the import system or pytest are further in."""
        while frame is not None:
            name = frame.f_code.co_filename
            if name not in self._modules:
                self._modules[name] = self._module(name)
            found = self._modules[name]
            if found is not None:
                return found, frame.f_lineno
            frame = frame.f_back
        return "", 0

    def _module(self, name: str) -> Optional[str]:
        if name.startswith(self._package + "/"):
            inside = name[len(self._package) + 1 : -len(".py")].replace("/", ".")
            return inside[: -len(".__init__")] if inside.endswith(".__init__") else inside
        if name.startswith((self._tests + "/", "<frozen importlib", "<frozen zipimport")) and name != __file__:
            return ""
        if name == "<string>":  # what a test gives an interpreter to run
            return ""
        if "/site-packages/_pytest/" in name:  # pytest's own doing, though a hook of the plugin is further out
            return ""
        return None


def _names_nothing(event: str, first: Any) -> bool:
    """A descriptor that is open already, memory without a file, or a name that no file has."""
    return bool(first == -1 if event == "mmap.__new__" else isinstance(first, int) or first == "")


def install(file: str, package: str, tests: str) -> None:
    """Watch this process from now on; an audit hook cannot be taken away again."""
    sys.addaudithook(_Watch(file, package, tests))


#: What is watched; all other events are passed over at once.
EVENTS = frozenset(
    """open os.listdir os.scandir os.mkdir os.rename os.remove os.rmdir os.link os.symlink os.chmod os.chown os.truncate os.utime
os.chdir mmap.__new__ glob.glob shutil.copyfile shutil.move shutil.rmtree shutil.make_archive shutil.unpack_archive
tempfile.mkstemp tempfile.mkdtemp sqlite3.connect subprocess.Popen os.posix_spawn os.exec os.system""".split()  # noqa: SIM905
)
