"""`postmortem debug TARGET`: a person's gdb on a core, wherever that lies, with the diagnosis made alongside."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO, Callable, Dict, Iterator, NamedTuple, Optional, Sequence, Tuple, cast

from . import report
from .bundle import Bundle, core_name
from .cores import stores
from .cores.executable import find_executable
from .cores.unpacked import compressed, unpacked
from .errors import NotACore, PostmortemError, UsageError
from .evidence import Evidence
from .extract.assemble.bundles import read_facts
from .extract.assemble.cores import open_core
from .extract.assemble.origins import named_as
from .extract.recorded.raw import kept_root
from .findings import Diagnosis
from .foreign.files import is_folder
from .foreign.held import Folder
from .foreign.processfiles import Shelves, below
from .native.debuglinks import endless
from .native.interactive import Opened, interact, script
from .pipeline import Progress, analyze_target, load_bundle

__all__ = ["run", "script"]

#: gdb's side of it is in gdb/why.py.
_WHY = "POSTMORTEM_WHY"
_BATCH = ("-batch", "--batch", "-batch-silent", "--batch-silent")
_HINT = "pm-why, pm-threads, pm-bt, pm-locals, pm-locks, pm-tasks, pm-gil and pm-objects are there; `help pm-bt` explains one"


class _Found(NamedTuple):
    core: Path
    name: str  # as the user knows it
    diagnose: Callable[[Optional[int]], Tuple[Evidence, Diagnosis]]  # with ``owner``
    owner: Optional[int] = None  # the user whose core it is, where the file does not tell
    root: Optional[Path] = None  # where its files are: of the container that it ran in, or kept in a bundle
    folder: Optional[Folder] = None  # of a bundle: the core is opened below it, as ``core_name``
    pid: int = 0


def run(
    arguments: Sequence[str],
    *,
    exe: Optional[Path],
    sysroot: Optional[Path],
    pid: Optional[int],
    progress: Progress,
    say: Callable[[str], None],
) -> int:
    """Runs gdb on the terminal until the user leaves it; gdb's exit status.

    arguments: the target, then what is passed on to gdb and finds the commands loaded. pid: which core of a bundle.
    say: takes remarks. Raises PostmortemError.
    """
    if not arguments or arguments[0].startswith("-"):
        raise UsageError("debug wants a core or bundle first", "`postmortem debug CORE -ex pm-threads --batch`")
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
                    f"a program of {target} names {waits_for} as its debug information: that is no regular file, and gdb would "
                    "wait for it",
                    "`postmortem analyze` reads the core without it",
                )
        if doubt is not None:
            say(f"{doubt.subject}: {doubt.reason}; {doubt.remedy}")
        variables: Dict[str, str] = {}
        with contextlib.ExitStack() as open_files:
            open_files.callback(os.close, descriptor)
            if not batch or any("pm-why" in argument for argument in gdb_arguments):
                variables[_WHY] = _diagnose_alongside(found, open_files)
            progress("")
            if not batch and sys.stdin.isatty():
                say(_HINT)
            return interact(Opened(found.core, program, sysroot, machine, descriptor), gdb_arguments, variables)


@contextlib.contextmanager
def _found(
    target: str,
    exe: Optional[Path],
    sysroot: Optional[Path],
    pid: Optional[int],
    progress: Progress,
    say: Callable[[str], None],
) -> Iterator[_Found]:
    """The core that is meant, plain, for as long as the block runs."""
    kept = stores.opened(target, stores.Where())
    if kept is not None:
        with kept as stored, named_as(stored):

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
            yield _Found(
                core, target, lambda _owner: load_bundle(path), root=kept_files, folder=bundle.folder, pid=number
            )
        return
    if pid is not None:
        raise UsageError("--pid chooses a core of a bundle, and this is a core", "leave it out")
    if compressed(path):
        with unpacked(path, progress) as plain:
            if plain.short:
                say(f"{path}: only {plain.size >> 20} MB could be unpacked: {plain.short}")
            yield _Found(
                plain.path,
                target,
                lambda owner: analyze_target(str(plain.path), exe=exe, sysroot=sysroot, owner=owner),
                plain.owner or None,
            )
        return
    yield _Found(path, target, lambda owner: analyze_target(target, exe=exe, sysroot=sysroot, owner=owner))


def _chosen(bundle: Bundle, path: Path, pid: Optional[int], say: Callable[[str], None]) -> int:
    cores = [number for number in bundle.pids if bundle.has_core(number)]
    if not cores:
        raise NotACore(f"{path} holds no core", "`postmortem report` shows what was captured")
    listed = ", ".join(map(str, cores))
    if pid is not None:
        if pid not in cores:
            raise UsageError(f"{path} holds no core of process {pid}", f"it has those of {listed}")
        return pid
    first = cores[0]
    if len(cores) > 1:
        say(f"this is process {first}; --pid chooses among {listed}")
    return first


def _diagnose_alongside(found: _Found, open_files: contextlib.ExitStack) -> str:
    """Starts the diagnosis; the path under which gdb finds it, ended by a NUL when it is whole.

    The file has no name, so nothing of it stays behind, however this ends.
    """
    unnamed = tempfile.TemporaryFile(prefix="postmortem-why-", buffering=0)  # noqa: SIM115 - closed by open_files
    stream = cast(BinaryIO, open_files.enter_context(unnamed))
    fd = stream.fileno()

    def work() -> None:
        text = _diagnosis(found)
        with contextlib.suppress(OSError, ValueError):  # the user has left meanwhile
            stream.write(text.encode("utf-8", "replace") + b"\0")

    threading.Thread(target=work, daemon=True).start()
    return f"/proc/{os.getpid()}/fd/{fd}"


def _diagnosis(found: _Found) -> str:
    try:
        evidence, diagnosis = found.diagnose(found.owner)
        text = report.FORMATS["text"].render(evidence, diagnosis, False, 80)
    except PostmortemError as exc:
        text = exc.sentence()
    except Exception as exc:  # a core is hostile input
        text = f"there is no diagnosis: {type(exc).__name__}: {exc}; this is a defect of postmortem"
    return text.replace(str(found.core), found.name)
