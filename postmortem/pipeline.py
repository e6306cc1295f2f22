"""Target → evidence → diagnosis: the one place where extraction meets classification."""

from __future__ import annotations

import errno
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Dict, Iterator, Optional, Sequence, TextIO, Tuple

from . import __version__, evidence, publish, report
from .bundle import Bundle
from .errors import CaptureFailed, PostmortemError
from .evidence import Evidence, Gap
from .evidence.vocabulary import GapCode
from .extract.assemble.how import How
from .findings import Diagnosis
from .foreign.files import is_folder
from .redaction.evidence import discreet, has_locals, without_locals
from .sizes import configured

if TYPE_CHECKING:
    from .cores.journal import Where
    from .extract.assemble.processes import Cores

Progress = Callable[[str], None]
#: Environment variable with the limit on recorded evidence in bytes; reading takes seven times as much memory.
_MAX_EVIDENCE = "POSTMORTEM_MAX_EVIDENCE"


def _silent(textreport: str) -> None:
    """Ignore progress."""


def analyze_target(
    target: str,
    *,
    exe: Optional[Path] = None,
    sysroot: Optional[Path] = None,
    progress: Progress = _silent,
    with_locals: bool = False,
    where: Optional[Where] = None,
    owner: Optional[int] = None,
) -> Tuple[Evidence, Diagnosis]:
    """Diagnose a core file, a bundle, or a core in a store.

    - ``with_locals``: read local variables and the messages of exceptions too
    - ``where``: the journal of ``coredumpctl:`` targets; None: this machine's
    - ``owner``: the user of the process that left a core file, if known

    Raises PostmortemError.
    """
    from .cores import stores  # noqa: PLC0415 - a report from recorded evidence needs none of it
    from .cores.dumptimes import dumped_at  # noqa: PLC0415
    from .extract.assemble.origins import errors_named, name_in_store, with_origin  # noqa: PLC0415

    kept = stores.opened(target, where or stores.Where())
    if kept is not None:
        progress(f"looking for {target}")
        with kept as stored, errors_named(name_in_store(stored)):
            how = How(exe, sysroot or stored.root, with_locals, progress)
            found = _from_file(stored.path, how._replace(dumped_at=dumped_at(stored.named)), stored.owner)
            return classified(discreet(with_origin(found, stored)))
    path = Path(target)
    if is_folder(str(path)) or path.suffix == ".zip":
        return _analyze_bundle(path, exe, sysroot, progress, with_locals)
    how = How(exe, sysroot, with_locals, progress, dumped_at=dumped_at(str(path)))
    return classified(_from_file(path, how, owner))


def _from_file(path: Path, how: How, owner: Optional[int]) -> Evidence:
    from .cores.unpacked import compressed  # noqa: PLC0415 - as above
    from .extract.assemble.cores import from_core  # noqa: PLC0415

    if compressed(path):
        return _from_compressed(path, how, owner)
    return from_core(path, how._replace(meanwhile=_get_ready), owner=owner, tool_version=__version__)


def _from_compressed(path: Path, how: How, owner: Optional[int]) -> Evidence:
    """Unpack a core and read it; replace the temporary file's name in gaps and errors by the user's."""
    from .cores.unpacked import unpacked  # noqa: PLC0415 - as above
    from .extract.assemble.cores import from_core  # noqa: PLC0415
    from .extract.assemble.origins import errors_named, gaps_named, name_of  # noqa: PLC0415

    with unpacked(path, how.progress) as plain:
        owner = plain.owner or None if owner is None else owner
        renamed = name_of(plain.path, str(path))
        with errors_named(renamed):
            found = from_core(plain.path, how, owner=owner, tool_version=__version__)
        gaps = list(gaps_named(found, renamed).gaps)
    if plain.short:
        megabytes, codec, why = plain.size >> 20, plain.codec, plain.short
        gaps.insert(0, Gap.of("core", str(path), "unpacked-short", megabytes=megabytes, codec=codec, why=why))
    return evidence.replace(found, gaps=tuple(gaps))


def load_bundle(path: Path, *, with_locals: bool = False) -> Tuple[Evidence, Diagnosis]:
    """Diagnose a bundle from its recorded evidence; extract it if there is none."""
    with Bundle.open(path) as bundle:
        recorded, damaged = _recorded(bundle)
        found = recorded
        if found is None:
            found = _from_bundle(bundle, How(with_locals=with_locals))
            found = evidence.replace(found, gaps=(*damaged, *found.gaps))
        found = _as_asked(found, bundle, with_locals, unread="no-locals-in-report")
        return _as_captured(bundle, recorded, classified(found))


def _as_captured(
    bundle: Bundle, recorded: Optional[Evidence], now: Tuple[Evidence, Diagnosis]
) -> Tuple[Evidence, Diagnosis]:
    """Replace the timings of this reading by those of the capture, so that a bundle's report stays the same."""
    found, diagnosis = now
    noted = bundle.manifest.get("timings")
    took = noted.get("classify_s") if isinstance(noted, dict) else None
    timings = evidence.replace(
        found.timings,
        extract_s=recorded.timings.extract_s if recorded is not None else None,
        classify_s=float(took) if isinstance(took, (int, float)) else None,
    )
    return evidence.replace(found, timings=timings), diagnosis


def _analyze_bundle(
    path: Path, exe: Optional[Path], sysroot: Optional[Path], progress: Progress, with_locals: bool
) -> Tuple[Evidence, Diagnosis]:
    """Diagnose a bundle: extract its evidence if the files that its cores need are here, else use the recorded evidence.

    The recorded one is used too when it knows more than what can be extracted here.
    """
    with Bundle.open(path) as bundle:
        recorded, damaged = _recorded(bundle)
        found = _evidence_of(bundle, recorded, exe, sysroot, progress, with_locals)
        found = evidence.replace(found, gaps=(*damaged, *found.gaps))
        return _as_captured(bundle, recorded, classified(found))


def _evidence_of(
    bundle: Bundle,
    recorded: Optional[Evidence],
    exe: Optional[Path],
    sysroot: Optional[Path],
    progress: Progress,
    with_locals: bool,
) -> Evidence:
    at_hand = recorded is not None and _files_at_hand(bundle, exe, sysroot)
    if recorded is not None and (bundle.stripped or (not at_hand and not (exe or sysroot))):
        return _as_asked(recorded, bundle, with_locals, exe or sysroot)
    found = _from_bundle(bundle, How(exe, sysroot, with_locals, progress))
    if recorded is None:
        return found
    lost = _lost(recorded, found, at_hand)
    if lost:
        recorded = _as_asked(recorded, bundle, with_locals)
        gap = Gap.of("core", "the bundle's cores", "recorded-instead", lost=lost)
        return evidence.replace(recorded, gaps=(*recorded.gaps, gap))
    kept = _sources(recorded.sources, found.sources)
    loops, branches = {**found.loops, **recorded.loops}, {**found.branches, **recorded.branches}
    return evidence.replace(found, sources=kept, loops=loops, branches=branches)


def _lost(recorded: Evidence, found: Evidence, at_hand: bool) -> Optional[str]:
    """Return what the new extraction has less of, in words; None if nothing.

    Locks without an owner count only where files are missing: otherwise the recorded owner was an error corrected
    since.
    """
    before, now = _extent(recorded), _extent(found)
    wanted = [what for what in before if not (at_hand and what in (_OWNERS, _NATIVE))]
    less = [f"{now[what]} of {before[what]} {what}" for what in wanted if now[what] < before[what]]
    return ", ".join(less) or None


_OWNERS = "locks' owners"
_NATIVE = "named native frames"


def _extent(known: Evidence) -> Dict[str, int]:
    threads = [thread for process in known.processes for thread in process.threads]
    return {
        "interpreters": sum(process.python is not None for process in known.processes),
        "threads": len(threads),
        "Python stacks": sum(bool(thread.python) for thread in threads),
        _NATIVE: sum(frame.function is not None for thread in threads for frame in thread.native),
        _OWNERS: sum(lock.owner_tid is not None for process in known.processes for lock in process.resources),
    }


def _as_asked(
    recorded: Evidence, bundle: Bundle, with_locals: bool, files: Optional[Path] = None, unread: GapCode = "no-locals"
) -> Evidence:
    """Return recorded evidence without what was not requested, and with a gap for what was requested and is missing.

    - ``files``: the path of --exe or --sysroot, if given
    - ``unread``: why the cores were not read
    """
    gaps = list(recorded.gaps)
    if bundle.stripped and files is not None:
        gaps.append(Gap.of("core", "the bundle's cores", "stripped", files=str(files)))
    if not with_locals:
        recorded = without_locals(recorded)
    elif not has_locals(recorded):
        gaps.append(Gap("cpython", "local variables", code="locals-stripped" if bundle.stripped else unread))
    return evidence.replace(recorded, gaps=tuple(gaps))


def _sources(old: Dict[str, Dict[int, str]], new: Dict[str, Dict[int, str]]) -> Dict[str, Dict[int, str]]:
    """Merge source lines; those recorded at the capture win, since the files may have changed."""
    return {file: {**new.get(file, {}), **old.get(file, {})} for file in sorted({*old, *new})}


def _recorded(bundle: Bundle) -> Tuple[Optional[Evidence], Tuple[Gap, ...]]:
    """Return a bundle's ``evidence.json``; None if missing or damaged, the latter with a gap.

    Earlier versions may have written secrets into it, which are masked.
    """
    most = configured(_MAX_EVIDENCE) or evidence.MOST_BYTES
    try:
        return discreet(evidence.decode(bundle.folder.read("evidence.json", most), most)), ()
    except FileNotFoundError:
        return None, ()
    except (OSError, ValueError) as exc:
        why = str(exc.strerror if isinstance(exc, OSError) else exc)
        code: GapCode = "evidence-unusable"
        if isinstance(exc, OSError) and exc.errno == errno.EFBIG:
            code = "evidence-too-large"
        return None, (Gap.of("bundle", "evidence.json", code, why=why, setting=_MAX_EVIDENCE),)


def _files_at_hand(bundle: Bundle, exe: Optional[Path], sysroot: Optional[Path]) -> bool:
    """Return whether there are cores, and all programs and libraries that they map are here as the same build."""
    from .extract.assemble.bundles import open_cores  # noqa: PLC0415 - as in _from_bundle

    with open_cores(bundle.folder, bundle.place, bundle.owner, sysroot) as cores:
        return bool(cores.files) and all(all(_usable(cores, pid, exe)) for pid in cores.files)


def _usable(cores: Cores, pid: int, exe: Optional[Path]) -> Iterator[bool]:
    try:
        core = cores.open(pid)
    except PostmortemError:
        yield False
        return
    try:
        if exe is not None:
            from .cores.executable import take_executable  # noqa: PLC0415 - as above

            take_executable(core, exe)
        for name in {f.path for f in core.files if f.offset == 0}:
            yield core.elf(name) is not None or not core.unusable[name].is_elf
    finally:
        core.close()


def _get_ready() -> None:
    """Import what follows the extraction, while that waits for gdb."""
    from .classify.engine import all_patterns  # noqa: PLC0415
    from .report.text import textreport  # noqa: PLC0415, F401

    all_patterns()


def _from_bundle(bundle: Bundle, how: How, until: Optional[float] = None) -> Evidence:
    from .extract.assemble.bundles import from_bundle  # noqa: PLC0415 - cores need none of it

    return from_bundle(bundle.folder, bundle.place, how, owner=bundle.owner, tool_version=__version__, until=until)


def classified(found: Evidence) -> Tuple[Evidence, Diagnosis]:
    """Evidence with its diagnosis; how long that took is noted."""
    from .classify.engine import classify  # noqa: PLC0415 - gdb starts sooner without the patterns
    from .report.phrases.findings import in_words  # noqa: PLC0415

    began = time.monotonic()
    diagnosis = in_words(classify(found), found)
    timings = evidence.replace(found.timings, classify_s=round(time.monotonic() - began, 4))
    return evidence.replace(found, timings=timings), diagnosis


def diagnose_captured(
    bundle: Bundle,
    *,
    stream: TextIO,
    format: str = "text",
    reports: Sequence[str] = (),
    progress: Progress = _silent,
    with_locals: bool = False,
    until: Optional[float] = None,
) -> Diagnosis:
    """Diagnose a bundle after its capture: write evidence and reports into it, and the report to ``stream``.

    ``until``: time.monotonic() at which the report is wanted; None: no limit. Raises PostmortemError; files already
    written stay.
    """
    plan = publish.plan(format, reports)
    found = _from_bundle(bundle, How(with_locals=with_locals, progress=progress), until)
    unwritten = _keep(bundle, "evidence.json", evidence.encode(found))
    found, diagnosis = classified(found)
    _note_time(bundle, found)
    for known in filter(lambda known: known.kept, report.FORMATS.values()):
        rendered = known.render(found, diagnosis, False, 80).encode()
        unwritten = _keep(bundle, f"report{known.suffix}", rendered) or unwritten
    publish.emit(plan, [(str(bundle.path), found, diagnosis)], stream, color="auto", many=False)
    if unwritten is not None:
        raise CaptureFailed(
            f"the diagnosis cannot be written into the bundle: {unwritten.strerror}", "free space there"
        )
    return diagnosis


def _note_time(bundle: Bundle, found: Evidence) -> None:
    """Record the classification's duration, which is in the report and must be the same when that is rendered again."""
    timings = bundle.manifest.setdefault("timings", {})
    if isinstance(timings, dict):
        timings["classify_s"] = found.timings.classify_s
        bundle.try_to_save()


def _keep(bundle: Bundle, name: str, data: bytes) -> Optional[OSError]:
    """Write a file into the bundle; return the error instead of raising it, so that the report is still shown."""
    try:
        bundle.write(name, data)
    except OSError as exc:
        return exc
    return None
