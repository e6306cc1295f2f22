"""``coredumpctl:MATCH`` → the core kept by systemd-coredump, from its file or from the journal.

coredumpctl itself is not needed: the journal has the same facts, without columns that cut them. A MATCH has
coredumpctl(1)'s meaning: a PID, an executable with a slash in its name, FIELD=value, else a command name; a unit,
``last``, and the base name of an executable are accepted as well.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from ..errors import CoreGone, NotACore, TargetNotFound, UsageError
from ..evidence import Gap, Origin
from ..foreign.held import Folder
from ..redaction.commands import masked_argv
from . import containers
from .journal import MOST_ENTRIES, PREFIX, RIGHTS, Entry, Found, Where, entries, stored_core
from .store import Nothing, Stored, lies_in, refusals, shortened, signal_name, something, whose, words
from .unpacked import in_this_process, spooled

#: systemd-coredump's folder, which is not configurable (src/coredump/coredump.c).
FOLDER = "/var/lib/systemd/coredump"
_FIELD = re.compile(r"[A-Z_][A-Z0-9_]{0,63}=")
_UNIT = re.compile(r".+\.(service|scope|slice|socket|mount|swap|timer|path|target)")
_COMM = 15  # bytes of a name kept by the kernel
_LISTED = 3
_MESSAGE, _MESSAGE_LINES, _WIDEST = 64 << 10, 40, 300  # bytes, lines, characters of a line
_DELETED = " (deleted)"
_RAISE = "raise these in /etc/systemd/coredump.conf"
_REMOVED = (
    "systemd-tmpfiles removes cores after some days (tmpfiles.d/systemd.conf), MaxUse and KeepFree of coredump.conf sooner: "
    "raise these, or save the next one with `coredumpctl dump -o core`"
)


@contextlib.contextmanager
def opened(match: str, where: Where) -> Iterator[Stored]:
    """Open the newest matching core, for the duration of the block.

    Raises:
    - what journal.entries does
    - TargetNotFound: no core matches
    - CoreGone, PermissionRefused, NotACore: the core cannot be opened
    """
    chosen, *older = choose(match, where)
    origin = origin_of(chosen, len(older), where)
    name = chosen.text("COREDUMP_FILENAME")
    with contextlib.ExitStack() as files:
        instead = _instead(older, where)
        if name is None:
            named = f"{PREFIX}{match}"
            path = files.enter_context(_from_journal(where, chosen, origin, instead))
        else:
            try:
                descriptor, named = _open(name, chosen, where, whose(origin))
            except CoreGone as exc:
                raise CoreGone(str(exc), f"{exc.next}{instead}", still_known(chosen)) from None
            files.callback(os.close, descriptor)
            path = in_this_process(descriptor)
        yield _stored(path, named, chosen, origin, files)


def _open(name: str, entry: Entry, where: Where, whose: str) -> Tuple[int, str]:
    """Return (descriptor of a core's file, its name). Raises CoreGone, PermissionRefused, NotACore."""
    last = name.rpartition("/")[2]
    if where.directory is not None and last and lies_in(str(where.directory), last):
        named = str(where.directory / last)  # copied together with the journal
        with refusals(named, whose, _REMOVED), Folder.at(str(where.directory)) as folder:
            return folder.open(last), named
    if not _is_kept(name):
        raise NotACore(
            f"{whose} is recorded in {name}, but systemd-coredump keeps cores only in {FOLDER}",
            "pass that file itself if you trust it",
        )
    with refusals(name, whose, _REMOVED), Folder.at(FOLDER) as folder:
        descriptor = folder.open(last)
    owner = os.fstat(descriptor).st_uid
    if owner not in (0, _user(entry)):
        os.close(descriptor)
        raise NotACore(
            f"{whose}, {name}, belongs to user {owner}, not to the user of the process", "pass it if you trust it"
        )
    return descriptor, name


def _is_kept(name: str) -> bool:
    """Return whether a path is that of a file directly in systemd-coredump's folder."""
    folder, _slash, last = name.rpartition("/")
    return folder == FOLDER and last not in ("", ".", "..")


def _user(entry: Entry) -> Optional[int]:
    """Return the user of the crashed process; for an unverified entry, the user who wrote it."""
    return entry.number("COREDUMP_UID" if entry.genuine else "_UID")


def is_there(entry: Entry, where: Where) -> bool:
    """Return whether the file named by an entry still exists; True for a core that the journal itself may hold."""
    name = entry.text("COREDUMP_FILENAME")
    if name is None:
        return True
    last = name.rpartition("/")[2]
    beside = where.directory is not None and lies_in(str(where.directory), last)
    return beside or (_is_kept(name) and lies_in(FOLDER, last))


def _instead(older: Sequence[Entry], where: Where) -> str:
    """Return a hint at an older matching core that still exists, or ""."""
    named = (entry for entry in older if entry.text("COREDUMP_FILENAME") is not None)
    there = next((entry for entry in named if is_there(entry, where)), None)
    return "" if there is None else f"; {PREFIX}{there.number('COREDUMP_PID')} is older and still there"


@contextlib.contextmanager
def _from_journal(where: Where, chosen: Entry, origin: Origin, instead: str) -> Iterator[Path]:
    with contextlib.ExitStack() as files:
        try:
            path = files.enter_context(spooled(something(stored_core(where, chosen)), whose(origin)))
        except Nothing:
            raise CoreGone(
                f"systemd did not keep {whose(origin)}: Storage=none in /etc/systemd/coredump.conf, or it was too large",
                f"{_RAISE} (Storage=external, ProcessSizeMax, ExternalSizeMax) before it crashes again{instead}",
                still_known(chosen),
            ) from None
        yield path


def _stored(path: Path, named: str, entry: Entry, origin: Origin, files: contextlib.ExitStack) -> Stored:
    if origin.trust == "unverified":
        return Stored(
            path,
            named,
            origin,
            gaps=(Gap("core", named, code="origin-unverified"),),
            owner=_user(entry),
        )
    gaps: List[Gap] = []
    if entry.text("COREDUMP_TRUNCATED") == "1":
        gaps.append(Gap("core", named, code="core-cut-by-systemd"))
    other_root = _other_root(entry)
    inside = origin.container or other_root
    root = None
    if inside is not None:
        if origin.trust == "verified":
            root = containers.root(entry.text("COREDUMP_CGROUP"), entry.text("_BOOT_ID"), other_root)
        if root is None:
            gaps.append(Gap.of("core", named, "container-files", container=inside))
        else:
            files.callback(os.close, root)
    exe = entry.text("COREDUMP_EXE")
    exe = exe[: -len(_DELETED)] if exe is not None and exe.endswith(_DELETED) else exe
    held = None if root is None else in_this_process(root)
    return Stored(path, named, origin, words(entry.text("COREDUMP_CMDLINE")), exe, held, tuple(gaps), _user(entry))


def _other_root(entry: Entry) -> Optional[str]:
    """Return the root directory of the process, if it was not the machine's."""
    root = entry.text("COREDUMP_ROOT")
    return None if root == "/" else root


# ---------------------------------------------------------------------- which one


def choose(match: str, where: Where) -> List[Entry]:
    """Return the matching entries, the newest first, at least one. Raises as ``opened``."""
    if not match.strip():
        raise UsageError("coredumpctl: needs to know which core", "use coredumpctl:last, :PID, :EXE, :COMM or :UNIT")
    asked = [match] if _FIELD.match(match) else []
    for genuine in (True, False):  # unverified entries count only where there is no genuine one
        found = entries(where, asked, genuine=genuine)
        for test in [_every] if asked or match == "last" else _meanings(match):
            meant = [entry for entry in found.entries if test(entry)]
            if meant:
                return [entry for entry in meant if entry.genuine] or meant
    raise _no_match(match, where, found)


def _every(_entry: Entry) -> bool:
    return True


def _meanings(match: str) -> Sequence[Callable[[Entry], bool]]:
    """Return tests for the meanings of a match, in order of precedence: coredumpctl's own meaning first."""
    if re.fullmatch(r"\d{1,10}", match):
        return [lambda entry: entry.number("COREDUMP_PID") == int(match)]
    if "/" in match:
        names = {os.path.normpath(Path.cwd() / match), os.path.realpath(match)}
        return [lambda entry: (entry.text("COREDUMP_EXE") or "").replace(_DELETED, "") in names]
    units = {match} if _UNIT.fullmatch(match) else {f"{match}.service"}

    def of_unit(entry: Entry) -> bool:
        return bool(units & {entry.text("COREDUMP_UNIT"), entry.text("COREDUMP_USER_UNIT")})

    def of_command(entry: Entry) -> bool:
        return entry.fields.get("COREDUMP_COMM") == os.fsencode(match)[:_COMM]

    def of_program(entry: Entry) -> bool:
        return Path((entry.text("COREDUMP_EXE") or "").replace(_DELETED, "")).name == match

    return [of_unit, of_command] if _UNIT.fullmatch(match) else [of_command, of_program, of_unit]


def _no_match(match: str, where: Where, found: Found) -> TargetNotFound:
    place = f"the journal in {where.directory}" if where.directory else "the journal"
    since = f" since {where.since}" if where.since else ""
    rights = f"other users' cores are not shown to this user: {RIGHTS}" if found.hidden else ""
    known = [origin_of(entry, 0, where) for entry in found.entries[: 100 * _LISTED]]
    if not known and (match == "last" or not _FIELD.match(match)):
        sentence, step = f"{place} has no core{since}", "`postmortem doctor` says where crashes go on this machine"
        return TargetNotFound(sentence, rights or step)
    sentence = f"{place} has no core of {match!r}{since}"
    if not known:
        return TargetNotFound(sentence, rights or "`coredumpctl list` shows the cores that it knows")
    listed = [
        f"PID {origin.pid} ({'unverified' if origin.trust == 'unverified' else f'{origin.command}, {origin.signal}'})"
        for origin in known
    ]
    older = f" among the newest {MOST_ENTRIES}" if found.more else ""
    newest = f"the newest: {shortened(listed, _LISTED)}"
    return TargetNotFound(f"{sentence}{older}; {newest}", rights or "`coredumpctl list` shows all")


# ---------------------------------------------------------------------- what is known of it


def origin_of(entry: Entry, others: int, where: Where) -> Origin:
    """Return the origin of a core.

    For an unverified entry it has only what journald added itself, and the pid that the entry claims.
    """
    noted = entry.number("__REALTIME_TIMESTAMP")
    if not entry.genuine:
        return Origin(
            store="systemd",
            core=entry.text("COREDUMP_FILENAME"),
            pid=entry.number("COREDUMP_PID"),
            time=noted / 1e6 if noted else None,
            hostname=entry.text("_HOSTNAME"),
            others=others,
            trust="unverified",
            written_by=entry.number("_UID"),
        )
    crashed = entry.number("COREDUMP_TIMESTAMP") or noted
    return Origin(
        store="systemd",
        core=entry.text("COREDUMP_FILENAME"),
        pid=entry.number("COREDUMP_PID"),
        command=entry.text("COREDUMP_COMM"),
        signal=signal_name(entry.number("COREDUMP_SIGNAL")),
        time=crashed / 1e6 if crashed else None,
        unit=entry.text("COREDUMP_USER_UNIT") or entry.text("COREDUMP_UNIT"),
        hostname=entry.text("COREDUMP_HOSTNAME") or entry.text("_HOSTNAME"),
        container=containers.name(entry.text("COREDUMP_CGROUP"), words(entry.text("COREDUMP_CONTAINER_CMDLINE"))),
        others=others,
        trust="copied" if where.directory is not None else "verified",
    )


def still_known(entry: Entry) -> Tuple[str, ...]:
    """Return what the journal has about a removed core: command line, unit, and stacks; nothing of an unverified entry.

    systemd reads the stacks at the crash, from version 198 on, if built with elfutils.
    """
    if not entry.genuine:
        return ()
    lines = [
        f"{label}: {value}"
        for label, value in (
            ("command line", " ".join(masked_argv(words(entry.text("COREDUMP_CMDLINE"))))),
            ("executable", entry.text("COREDUMP_EXE")),
            ("unit", entry.text("COREDUMP_USER_UNIT") or entry.text("COREDUMP_UNIT")),
        )
        if value
    ]
    said = (entry.text("MESSAGE", _MESSAGE) or "").splitlines()
    at = next((number for number, line in enumerate(said) if line.startswith("Stack trace of thread")), None)
    if at is not None:
        stacks = [line for line in said[at:] if line.strip()]
        lines += ["what systemd recorded when it crashed:", *stacks[:_MESSAGE_LINES]]
        if len(stacks) > _MESSAGE_LINES:
            lines.append(
                f"… {len(stacks) - _MESSAGE_LINES} more lines: `coredumpctl info {entry.number('COREDUMP_PID')}`"
            )
    return tuple(line[:_WIDEST] for line in lines)
