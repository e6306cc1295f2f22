"""Starting programs: the only module that does, except for the command under capture (``capture.run.spawn``).

The working directory, the environment and the target's files may be controlled by another user, so none of them decides
what runs:

- **which**: programs are looked for only in the absolute folders of PATH. An empty word in PATH, or ``.``, is the
  working directory.
- **arguments**: our interpreters run isolated (``-I``: no working directory, no PYTHON* variable, no user's site) and
  get the folders of our own code by name.
- **environment**: an allow-list. Not on it: PYTHON*, LD_*, variables that make the C library load code (GCONV_PATH and
  others: unsecvars.h in glibc's sysdeps/generic), gdb's start-up files and history, OPENSSL_CONF.
- **working directory**: one in which no file can be created.

No version control program is among ``PROGRAMS``, and none may be added: git runs commands from a repository's
configuration.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .workspace import VARIABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

#: All programs that are ever started, by the names that ``start``, ``run`` and ``spawn`` take.
PROGRAMS = ("python", "gdb", "py-spy", "journalctl", "decompressor")

_PR_SET_PDEATHSIG = 1
#: The working directory of programs: its only names are numbers, and no file can be created there.
NOWHERE = "/proc/self/fdinfo"

_ROOT = str(Path(__file__).resolve().parents[1])
#: Variables about the user, writable places, language and terminal.
_KEPT = {
    "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "XDG_CACHE_HOME", "TERM", "COLUMNS", "LINES", "NO_COLOR",
    *VARIABLES,  # names of folders that are not read
}  # fmt: skip
_KEPT_PREFIXES = ("LC_", "POSTMORTEM_")
#: Variables that an interactive debugger needs: shell, editor and terminal.
_OF_A_PERSON = {
    "SHELL", "EDITOR", "VISUAL", "PAGER", "INPUTRC", "COLORTERM", "TERMINFO", "TERMINFO_DIRS", "DISPLAY", "WAYLAND_DISPLAY",
    "XAUTHORITY", "SSH_TTY",
}  # fmt: skip
#: Variables that pip needs to reach its index, and version managers to find their interpreters.
_OF_PIP = {
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "PYENV_ROOT", "PYENV_VERSION", "XDG_CONFIG_HOME",
}  # fmt: skip
#: gdb's settings; one that an older gdb lacks (debuginfod: 10) only causes a warning.
_GDB = (
    "set auto-load off",
    "set auto-load safe-path /dev/null",  # an empty value would mean gdb's built-in path
    "set auto-load scripts-directory /dev/null",
    "set debuginfod enabled off",
)
#: Variables with names of files and folders, which are made absolute for another working directory.
_NAMES = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "POSTMORTEM_GDB", "POSTMORTEM_PYSPY")


def find(name: str, path: Optional[str] = None) -> Optional[str]:
    """Return the absolute path of a program, or None.

    A name with a slash is used as it is; any other is looked for in ``path`` (default: PATH), without relative folders.
    """
    if os.sep in name:
        found = shutil.which(name)
    else:
        found = shutil.which(
            name, path=os.pathsep.join(_absolute(path or os.environ.get("PATH", os.defpath))) or os.devnull
        )
    return str(Path(found).absolute()) if found else None


def environment(program: str, more: Optional[Mapping[str, str]] = None, *, person: bool = False) -> Dict[str, str]:
    """Return the environment of a program in ``PROGRAMS``.

    - ``more``: variables of our own
    - ``person``: whether a user interacts with it
    """
    kept = _KEPT | _OF_A_PERSON if person else _KEPT
    found = {name: value for name, value in os.environ.items() if name in kept or name.startswith(_KEPT_PREFIXES)}
    for name in _NAMES:
        if os.sep in found.get(name, ""):
            found[name] = str(Path(found[name]).absolute())
    found["PATH"] = os.pathsep.join(_absolute(os.environ.get("PATH", os.defpath)))
    if program == "python":
        found.update(_libraries())
    elif program == "gdb":
        found.update(PYTHONNOUSERSITE="1", PYTHONSAFEPATH="1", GDBHISTFILE=os.devnull)
    return {**found, **(more or {})}


def for_pip() -> Dict[str, str]:
    """Return further variables for an interpreter that runs pip."""
    return {name: value for name, value in os.environ.items() if name in _OF_PIP or name.startswith("PIP_")}


def python(
    module: str, arguments: Sequence[str], *, flags: Sequence[str] = (), paths: Optional[Sequence[str]] = None
) -> List[str]:
    """Return the command line of an isolated interpreter that runs ``main(arguments)`` of a module of ours.

    It exits with the result. ``paths``: the result of ``code_folders`` in a process that could determine it; None:
    determined here.

    The package is imported from its own folder, which is then moved behind all others: a file beside the package, as in
    site-packages, cannot shadow a standard module.
    """
    further = list(code_folders() if paths is None else paths)
    boot = (
        f"import sys; sys.path.insert(0, {_ROOT!r}); import postmortem; del sys.path[0]; sys.path += {further!r}; "
        f"from {module} import main; sys.exit(main(sys.argv[1:]))"
    )
    return [sys.executable, "-I", *flags, "-c", boot, *arguments]


def code_folders() -> List[str]:
    """Return the folders in which an isolated interpreter finds this package and its dependencies.

    That is: beside this package, the user's site if enabled here, and where the dependencies were installed otherwise.
    """
    import site  # noqa: PLC0415 - seldom needed

    folders = [_ROOT]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    from importlib.util import find_spec  # noqa: PLC0415

    with contextlib.suppress(ImportError, ValueError):
        spec = find_spec("msgspec")
        # a package only: a single file of that name would be someone else's
        folders += [str(Path(place).resolve().parent) for place in (spec and spec.submodule_search_locations) or ()]
    return list(dict.fromkeys(folders))


def gdb(path: Path) -> List[str]:
    """Return the first words of every gdb command line: no start-up files, scripts or downloads."""
    words = [str(path), "-nx", "-q"]
    for setting in _GDB:
        words += ["-iex", setting]
    return words


# ---------------------------------------------------------------------- starting


def start(
    program: str,
    words: Sequence[str],
    *,
    folder: Optional[str] = NOWHERE,
    env: Optional[Dict[str, str]] = None,
    **settings: Any,
) -> subprocess.Popen[bytes]:
    """Start one of ``PROGRAMS`` with subprocess.Popen.

    - ``folder``: working directory; None keeps the current one
    - ``env``: the whole environment; None: ``environment(program)``

    Raises OSError.
    """
    import subprocess  # noqa: PLC0415 - `spawn` does without

    return subprocess.Popen(_absolutely(program, words), cwd=folder, env=env or environment(program), **settings)


def run(
    program: str,
    words: Sequence[str],
    *,
    folder: Optional[str] = NOWHERE,
    env: Optional[Dict[str, str]] = None,
    **settings: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run one of ``PROGRAMS`` with subprocess.run, as ``start`` does, with an empty stdin."""
    import subprocess  # noqa: PLC0415

    settings.setdefault("check", False)
    words = _absolutely(program, words)
    return subprocess.run(words, stdin=subprocess.DEVNULL, cwd=folder, env=env or environment(program), **settings)  # noqa: PLW1510


def spawn(
    program: str,
    words: Sequence[str],
    *,
    file_actions: Sequence[Tuple[Any, ...]] = (),
    env: Optional[Dict[str, str]] = None,
    folder: Optional[str] = NOWHERE,
    **settings: Any,
) -> int:
    """Start one of ``PROGRAMS`` with os.posix_spawn, for callers that set signals or need no pipe; return the pid.

    posix_spawn takes no working directory, so ours is changed for a moment: no other thread may use relative names
    meanwhile. Raises OSError.
    """
    words = _absolutely(program, words)
    with _in(folder):
        return os.posix_spawn(words[0], words, env or environment(program), file_actions=file_actions, **settings)


def ending_with_parent() -> Callable[[], object]:
    """Return a ``preexec_fn`` for a program to be killed when the thread that starts it ends (prctl(2), PR_SET_PDEATHSIG).

    Everything is imported before the fork, during which another thread may hold the import lock.
    """
    import ctypes  # noqa: PLC0415
    import signal  # noqa: PLC0415

    prctl, number = ctypes.CDLL(None).prctl, int(signal.SIGKILL)
    return lambda: prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def _absolutely(program: str, words: Sequence[str]) -> List[str]:
    if program not in PROGRAMS or not words[0].startswith("/"):
        raise ValueError(f"{program} is not started as {words[0]!r}")
    return list(words)


@contextlib.contextmanager
def _in(folder: Optional[str]) -> Iterator[None]:
    if folder is None:
        yield
        return
    here = os.open(".", os.O_PATH | os.O_DIRECTORY)
    try:
        os.chdir(folder)
        try:
            yield
        finally:
            with contextlib.suppress(PermissionError):  # names relative to such a folder did not work before, either
                os.fchdir(here)
    finally:
        os.close(here)


def _absolute(path: str) -> List[str]:
    return [folder for folder in path.split(os.pathsep) if folder.startswith("/")]


def _libraries() -> Dict[str, str]:
    """Return the folders of LD_LIBRARY_PATH from which this process has loaded libraries: its interpreter may need them."""
    named = _absolute(os.environ.get("LD_LIBRARY_PATH", ""))
    if not named:
        return {}
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
        used = {
            str(Path(line.split(None, 5)[5].rstrip("\n")).parent) for line in stream if "/" in line and ".so" in line
        }
    kept = [folder for folder in named if os.path.realpath(folder) in used]
    return {"LD_LIBRARY_PATH": os.pathsep.join(kept)} if kept else {}
