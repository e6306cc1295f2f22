"""Ending a tree of processes: a signal, some seconds to obey it, then KILL, until no process of the tree is left."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import Callable, List, Optional, Set, Tuple

from ... import signalling
from ..procfs.tree import Member
from .command import Command

_POLL_S = 0.02
#: Looks at a tree that went on forking, before it is believed to have ended.
_LOOKS = 8
#: Seconds to wait after the last process was found that had not been sent KILL; only one in uninterruptible I/O remains
#: then. And at most: processes that fork without pause are found later than they are made on a machine that is busy.
_KILLED_PATIENCE_S, _MOST_PATIENCE_S = 3.0, 20.0

Members = Callable[[], List[Member]]


def end_tree(command: Command, members: Members, first: int, kill_after: float) -> List[int]:
    """End the tree; return the pids of processes that do not end.

    - ``first``: the signal sent before KILL
    - ``kill_after``: seconds until KILL; 0: never, as in timeout(1)

    A further INT, TERM, HUP or QUIT to postmortem sends KILL at once.
    """
    command.interrupted = None
    _signal_all(command, members, first)
    if _gone(command, members, kill_after if kill_after else float("inf")):
        return []
    latest = time.monotonic() + _MOST_PATIENCE_S
    until, breeds = time.monotonic() + _KILLED_PATIENCE_S, False
    killed: Set[Tuple[int, int]] = set()
    while time.monotonic() < until:
        command.interrupted = None
        found = _signal_all(command, members, signal.SIGKILL)  # again: it may have started others meanwhile
        if found - killed:
            breeds = breeds or bool(killed)
            until = min(time.monotonic() + _KILLED_PATIENCE_S, latest)
            killed |= found
        if _gone(command, members, 0.2) and (not breeds or _stays_gone(command, members)):
            return []
    return [member.pid for member in living(command, members)]


def living(command: Command, members: Members) -> List[Member]:
    """Return the processes of the tree that have not ended."""
    command.reap()
    return [member for member in members() if member.alive]


def _signal_all(command: Command, members: Members, number: int) -> Set[Tuple[int, int]]:
    """Signal the tree, and continue those of its processes that are stopped; return (pid, start) of all that were found.

    The process group is signalled in one call, so that no member can fork in between; then the processes outside it. Once
    its leader has been waited for, the group's id may be reused: then each process is signalled by itself, in two rounds.
    """
    targets = living(command, members)
    group = command.pid if command.leads_group else None
    if group is not None:
        for each in (number, signal.SIGCONT):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signalling.send_to_group(group, each)
    told = _tell_each(targets, group, number, set())
    if group is None:
        told = _tell_each(living(command, members), group, number, told)
    return told | {(member.pid, member.start) for member in targets}


def _tell_each(
    targets: List[Member], group: Optional[int], number: int, told: Set[Tuple[int, int]]
) -> Set[Tuple[int, int]]:
    """Signal the processes outside of ``group`` that are not in ``told`` yet; return all signalled so far."""
    for member in targets:
        if member.pgid != group and (member.pid, member.start) not in told:
            told.add((member.pid, member.start))
            with contextlib.suppress(PermissionError):  # a set-user-id program, which will be reported as not ended
                signalling.send(member.pid, member.start, number, signal.SIGCONT)
    return told


def _gone(command: Command, members: Members, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while living(command, members):
        left = until - time.monotonic()
        if left <= 0 or command.interrupted is not None:
            return False
        command.pause(min(_POLL_S, left))
    return True


def _stays_gone(command: Command, members: Members) -> bool:
    """Return whether several looks in a row find nobody: one that forks and ends is in none of /proc's listings at times."""
    for _ in range(_LOOKS):
        command.pause(_POLL_S)
        if living(command, members):
            return False
    return True
