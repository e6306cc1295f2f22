"""`postmortem debug TARGET`: an interactive gdb on a core, with the child that answers its commands."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Callable, Iterator, NamedTuple, Optional, Sequence

from . import programs
from .bundle import Bundle, core_name
from .cores import stores
from .cores.executable import find_executable
from .cores.unpacked import compressed, unpacked
from .errors import NotACore, PostmortemError, UsageError
from .extract.assemble.bundles import read_facts
from .extract.assemble.cores import open_core
from .extract.assemble.origins import errors_named, name_in_store
from .extract.recorded.raw import kept_root
from .foreign.files import is_folder
from .foreign.held import Folder
from .foreign.processfiles import Shelves, below
from .native.debuglinks import endless
from .native.interactive import Opened, interact, script
from .report.phrases.gaps import in_words

__all__ = ["run", "script"]

#: Variable with the command of the child; gdb/engine.py reads it.
_ENGINE = "POSTMORTEM_ENGINE"
_BATCH = ("-batch", "--batch", "-batch-silent", "--batch-silent")
_HINT = "pm-why, pm-threads, pm-bt, pm-locals, pm-locks, pm-tasks, pm-gil and pm-objects are available; `help pm-bt` explains one"


class _Found(NamedTuple):
    core: Path
    name: str  # as the user knows it
    owner: Optional[int] = None  # owner of the core, if the file does not tell
    root: Optional[Path] = None  # root of its files: the container's, or one stored in a bundle
    folder: Optional[Folder] = None  # of a bundle: the core is opened below it, as ``core_name``
    bundle: Optional[Path] = None
    pid: int = 0


def run(
    arguments: Sequence[str],
    *,
    exe: Optional[Path],
    sysroot: Optional[Path],
    pid: Optional[int],
    progress: Callable[[str], None],
    say: Callable[[str], None],
) -> int:
    """Run gdb on the terminal until the user leaves it; return its exit status.

    - ``arguments``: the target, then gdb's own arguments, which run after the commands are loaded
    - ``pid``: selects a core of a bundle
    - ``say``: receives remarks

    Raises PostmortemError.
    """
    if not arguments or arguments[0].startswith("-"):
        raise UsageError(
            "debug needs a core or bundle as its first argument", "`postmortem debug CORE -ex pm-threads --batch`"
        )
    target, gdb_arguments = arguments[0], arguments[1:]
    batch = any(argument in _BATCH for argument in gdb_arguments)
    with _found(target, exe, sysroot, pid, progress, say) as found:
        sysroot = sysroot or found.root
        with contextlib.ExitStack() as shelves:
            opened = found.folder.open(core_name(found.pid)) if found.folder is not None else None
            core = open_core(found.core, shelves.enter_context(Shelves(below(sysroot))).of({}), descriptor=opened)
            shelves.callback(core.close)
            program, doubt = (exe, None) if exe is not None else find_executable(core, sysroot)
            machine, descriptor = core.machine_name, os.dup(core.descriptor)
            waits_for = endless(core, program, sysroot)
            if waits_for is not None:
                os.close(descriptor)
                raise PostmortemError(
                    f"a program of {target} names {waits_for} as its debug information: not a regular file, and gdb would "
                    "wait for it",
                    "`postmortem analyze` reads the core without it",
                )
        if doubt is not None:
            doubt = in_words(doubt)
            say(f"{doubt.subject}: {doubt.reason}; {doubt.remedy}")
        opened_as = Opened(found.core, program, sysroot, machine, descriptor)
        try:
            progress("")
            if not batch and sys.stdin.isatty():
                say(_HINT)
            return interact(
                opened_as, gdb_arguments, {_ENGINE: _engine(opened_as, found, exe, sysroot, early=not batch)}
            )
        finally:
            os.close(descriptor)


def _engine(opened: Opened, found: _Found, exe: Optional[Path], sysroot: Optional[Path], *, early: bool) -> str:
    """Return the command that starts the child, as JSON.

    ``early``: start it before the first command.
    """
    known = {
        "core": opened.file.for_gdb,
        "path": str(found.core.absolute()),
        "name": found.name,
        "exe": str(exe.absolute()) if exe is not None else None,
        "sysroot": str(sysroot.absolute()) if sysroot is not None else None,
        "owner": found.owner,
        "bundle": str(found.bundle.absolute()) if found.bundle is not None else None,
        "pid": found.pid,
    }
    handed = {
        "words": programs.python("postmortem.gdbchild.child", [json.dumps(known)]),
        "environment": programs.environment("python"),
        **({"early": True} if early else {}),
    }
    return json.dumps(handed)


@contextlib.contextmanager
def _found(
    target: str,
    exe: Optional[Path],
    sysroot: Optional[Path],
    pid: Optional[int],
    progress: Callable[[str], None],
    say: Callable[[str], None],
) -> Iterator[_Found]:
    """Provide the target's core, decompressed, for the duration of the block."""
    kept = stores.opened(target, stores.Where())
    if kept is not None:
        with kept as stored, errors_named(name_in_store(stored)):

            def said(text: str) -> None:
                say(text.replace(str(stored.path), stored.named))

            with _found(str(stored.path), exe, sysroot or stored.root, pid, progress, said) as found:
                owner = found.owner if stored.owner is None else stored.owner
                yield found._replace(name=target, root=stored.root, owner=owner)
        return
    path = Path(target)
    if is_folder(str(path)) or path.suffix == ".zip":
        with Bundle.open(path) as bundle:
            number = _chosen(bundle, path, pid, say)
            root = kept_root(read_facts(bundle.folder, number))
            core = bundle.place / core_name(number)
            kept_files = bundle.place / root if root else None
            yield _Found(core, target, root=kept_files, folder=bundle.folder, bundle=path, pid=number)
        return
    if pid is not None:
        raise UsageError("--pid chooses a core of a bundle, but this is a core", "leave it out")
    if compressed(path):
        with unpacked(path, progress) as plain:
            if plain.short:
                say(f"{path}: only {plain.size >> 20} MB could be unpacked: {plain.short}")
            yield _Found(plain.path, target, plain.owner or None)
        return
    yield _Found(path, target)


def _chosen(bundle: Bundle, path: Path, pid: Optional[int], say: Callable[[str], None]) -> int:
    cores = [number for number in bundle.pids if bundle.has_core(number)]
    if not cores:
        raise NotACore(f"{path} holds no core", "`postmortem report` shows what was captured")
    listed = ", ".join(map(str, cores))
    if pid is not None:
        if pid not in cores:
            raise UsageError(f"{path} holds no core of process {pid}", f"it has cores of {listed}")
        return pid
    first = cores[0]
    if len(cores) > 1:
        say(f"this is process {first}; --pid chooses among {listed}")
    return first
