"""``coredumpctl:MATCH`` → the core that systemd-coredump kept, from its file or out of the journal.

coredumpctl itself is not needed: the journal says all that it says, and in a form that no column width cuts. What a
MATCH means is coredumpctl(1)'s: a PID, an executable with a slash in its name, FIELD=value, else a command name; a unit,
``last``, and the base name of an executable are understood as well.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from ..discretion.commands import masked_argv
from ..errors import CoreGone, TargetNotFound, UsageError
from ..evidence import Gap, Origin
from . import containers
from .journal import MOST_ENTRIES, PREFIX, RIGHTS, Entry, Found, Where, entries, stored_core
from .store import Nothing, Stored, exists, readable, shortened, signal_name, something, whose, words
from .unpacked import spooled

_FIELD = re.compile(r"[A-Z_][A-Z0-9_]{0,63}=")
_UNIT = re.compile(r".+\.(service|scope|slice|socket|mount|swap|timer|path|target)")
_COMM = 15  # bytes that the kernel keeps of a name
_LISTED = 3
_MESSAGE, _MESSAGE_LINES, _WIDEST = 64 << 10, 40, 300  # bytes, lines, characters of a line
_DELETED = " (deleted)"
_CUT = "cut short by systemd: it was larger than ProcessSizeMax, ExternalSizeMax or JournalSizeMax"
_RAISE = "raise these in /etc/systemd/coredump.conf"
_REMOVED = (
    "systemd-tmpfiles removes cores after some days (tmpfiles.d/systemd.conf), MaxUse and KeepFree of coredump.conf sooner: "
    "raise these, or save the next one with `coredumpctl dump -o core`"
)  # fmt: skip


@contextlib.contextmanager
def opened(match: str, where: Where) -> Iterator[Stored]:
    """The newest core that is meant, for as long as the block runs.

    Raises what journal.entries does; TargetNotFound when no core is meant; CoreGone, PermissionRefused, NotACore when
    it cannot be had.
    """
    chosen, *older = choose(match, where)
    origin = origin_of(chosen, len(older))
    name = chosen.text("COREDUMP_FILENAME")
    if name is None:
        yield from _from_journal(match, where, chosen, origin, _instead(older))
        return
    path = Path(name)
    if where.directory is not None and not exists(path) and exists(where.directory / path.name):
        path = where.directory / path.name  # copied together with the journal
    try:
        readable(path, whose(origin), _REMOVED)
    except CoreGone as exc:
        raise CoreGone(str(exc), f"{exc.next}{_instead(older)}", still_known(chosen)) from None
    yield _stored(path, f"{path}", chosen, origin)


def _instead(older: Sequence[Entry]) -> str:
    """An older core that was meant as well and is still there."""
    there = next((e for e in older if _has_file(e)), None)
    return "" if there is None else f"; {PREFIX}{there.number('COREDUMP_PID')} is older and still there"


def _has_file(entry: Entry) -> bool:
    name = entry.text("COREDUMP_FILENAME")
    return name is not None and exists(Path(name))


def _from_journal(match: str, where: Where, chosen: Entry, origin: Origin, instead: str) -> Iterator[Stored]:
    named = f"{PREFIX}{match}"
    with contextlib.ExitStack() as files:
        try:
            path = files.enter_context(spooled(something(stored_core(where, chosen)), named))
        except Nothing:
            raise CoreGone(
                f"systemd kept nothing of {whose(origin)}: Storage=none in /etc/systemd/coredump.conf, or it was too large",
                f"{_RAISE} (Storage=external, ProcessSizeMax, ExternalSizeMax) before it crashes again{instead}",
                still_known(chosen),
            ) from None
        yield _stored(path, named, chosen, origin)


def _stored(path: Path, named: str, entry: Entry, origin: Origin) -> Stored:
    gaps: List[Gap] = []
    if entry.text("COREDUMP_TRUNCATED") == "1":
        gaps.append(Gap("core", named, _CUT, f"{_RAISE} before it crashes again"))
    root, other_root = None, _other_root(entry)
    inside = origin.container or other_root
    if inside is not None:
        if other_root is not None and exists(Path(other_root)):
            root = Path(other_root)
        else:
            root = containers.root(entry.text("COREDUMP_CGROUP"), entry.text("_BOOT_ID"))
        if root is None:
            reason = f"it ran in a container ({inside}), whose program and libraries are not those of this machine"
            gaps.append(Gap("core", named, reason, "pass --sysroot with the container's files, or --exe"))
    exe = entry.text("COREDUMP_EXE")
    exe = exe[: -len(_DELETED)] if exe is not None and exe.endswith(_DELETED) else exe
    return Stored(path, named, origin, words(entry.text("COREDUMP_CMDLINE")), exe, root, tuple(gaps))


def _other_root(entry: Entry) -> Optional[str]:
    """The directory that the process had as its root, when it was not the machine's."""
    root = entry.text("COREDUMP_ROOT")
    return None if root == "/" else root


# ---------------------------------------------------------------------- which one


def choose(match: str, where: Where) -> List[Entry]:
    """The entries that are meant, the newest first; never none. Raises as ``opened``."""
    if not match.strip():
        raise UsageError("coredumpctl: wants to know which core", "coredumpctl:last, :PID, :EXE, :COMM or :UNIT")
    asked = [match] if _FIELD.match(match) else []
    found = entries(where, asked)
    for test in [_every] if asked or match == "last" else _meanings(match):
        meant = [entry for entry in found.entries if test(entry)]
        if meant:
            return meant
    raise _no_match(match, where, found)


def _every(_entry: Entry) -> bool:
    return True


def _meanings(match: str) -> Sequence[Callable[[Entry], bool]]:
    """What a match may mean, the first that fits counts: coredumpctl's own meaning comes first."""
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
    known = [origin_of(entry, 0) for entry in found.entries[: 100 * _LISTED]]
    if not known and (match == "last" or not _FIELD.match(match)):
        sentence, step = f"{place} has no core{since}", "`postmortem doctor` says where crashes go on this machine"
        return TargetNotFound(sentence, rights or step)
    sentence = f"{place} has no core of {match!r}{since}"
    if not known:
        return TargetNotFound(sentence, rights or "`coredumpctl list` shows which there are")
    listed = [f"PID {origin.pid} ({origin.command}, {origin.signal})" for origin in known]
    older = f" among the newest {MOST_ENTRIES}" if found.more else ""
    newest = f"the newest there are: {shortened(listed, _LISTED)}"
    return TargetNotFound(f"{sentence}{older}; {newest}", rights or "`coredumpctl list` shows all")


# ---------------------------------------------------------------------- what is known of it


def origin_of(entry: Entry, others: int) -> Origin:
    """What is told of a core's origin."""
    crashed = entry.number("COREDUMP_TIMESTAMP") or entry.number("__REALTIME_TIMESTAMP")
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
    )


def still_known(entry: Entry) -> Tuple[str, ...]:
    """What the journal tells of a core that is no more: its command line, unit, and the stacks that systemd read out of
    it when it crashed (from 198 on, where it was built with elfutils)."""
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
        lines += ["what systemd read out of it when it crashed:", *stacks[:_MESSAGE_LINES]]
        if len(stacks) > _MESSAGE_LINES:
            lines.append(f"… {len(stacks) - _MESSAGE_LINES} more lines: `coredumpctl info {entry.number('COREDUMP_PID')}`")
    return tuple(line[:_WIDEST] for line in lines)
