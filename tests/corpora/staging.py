"""Surroundings in which a case runs: control groups with a quota, a limit, or frozen; a terminal at which nobody types.

``within`` of case.toml: "cpu-quota 0.1" (CPUs), "memory-limit 64M", "frozen" (when the time is over), "terminal".
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pty
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

STAGED = ("cpu-quota", "memory-limit", "frozen", "terminal")
_GROUPS = Path("/sys/fs/cgroup")
_PERIOD_US = 100_000
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_ENTER = 'for group in $GROUPS_OF_CASE; do echo $$ > "$group/cgroup.procs"; done; exec "$@"'
_counter = itertools.count()


class NotStaged(Exception):
    """One sentence: what these surroundings need and have not got here."""


class Stage(NamedTuple):
    """``enter`` goes before the program's command, ``session`` before that of whoever runs it; both end with exec.
    ``freeze``: to be called when the time is over."""

    enter: List[str]
    session: List[str]
    environment: Dict[str, str]
    stdin: int
    freeze: Optional[Callable[[], object]]


@contextlib.contextmanager
def staged(within: Sequence[str]) -> Iterator[Stage]:
    """The surroundings, taken down afterwards with whatever still runs in them. Raises NotStaged."""
    with contextlib.ExitStack() as stack:
        groups: List[Path] = []
        stdin, session, freeze = subprocess.DEVNULL, [], None
        for one in within:
            kind, _space, value = one.partition(" ")
            if kind == "cpu-quota":
                groups.append(stack.enter_context(_group("cpu", _quota(float(value)))))
            elif kind == "memory-limit":
                limit = str(int(value[:-1]) * _UNITS[value[-1]])
                groups.append(
                    stack.enter_context(_group("memory", {"memory.limit_in_bytes": limit, "memory.max": limit}))
                )
            elif kind == "frozen":
                groups.append(stack.enter_context(_group("freezer", {})))
                freeze = _freezer(groups[-1])
            elif kind == "terminal":
                stdin, session = stack.enter_context(_terminal()), ["setsid", "--ctty"]
            else:
                raise NotStaged(f"nobody knows how to stage {one!r}")
        enter = ["/bin/sh", "-c", _ENTER, "sh"] if groups else []
        yield Stage(enter, session, {"GROUPS_OF_CASE": " ".join(map(str, groups))}, stdin, freeze)


def _quota(cpus: float) -> Dict[str, str]:
    quota = int(cpus * _PERIOD_US)
    return {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": str(quota), "cpu.max": f"{quota} {_PERIOD_US}"}


@contextlib.contextmanager
def _group(controller: str, files: Dict[str, str]) -> Iterator[Path]:
    """A control group of version 1, or else of version 2; of ``files`` those that it has are written."""
    old = _GROUPS / controller
    group = (old if old.is_dir() else _GROUPS) / f"pm-case-{os.getpid()}-{next(_counter)}"
    try:
        group.mkdir()
    except OSError as exc:
        raise NotStaged(f"no control group can be made in {group.parent}: {exc.strerror}") from exc
    try:
        try:
            written = [(group / name).write_text(text) for name, text in files.items() if (group / name).exists()]
        except OSError as exc:
            raise NotStaged(f"{group}: {exc.strerror}") from exc
        if files and not written:
            raise NotStaged(f"{group} has none of {', '.join(files)}")
        yield group
    finally:
        _take_down(group)


def _freezer(group: Path) -> Callable[[], object]:
    old = group / "freezer.state"
    return lambda: old.write_text("FROZEN") if old.exists() else (group / "cgroup.freeze").write_text("1")


def _take_down(group: Path) -> None:
    for name, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        if (group / name).exists():
            (group / name).write_text(text)
    for _try in range(100):
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                os.kill(int(pid), 9)
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.05)


@contextlib.contextmanager
def _terminal() -> Iterator[int]:
    """The descriptor for stdin."""
    keyboard, screen = pty.openpty()
    try:
        yield screen
    finally:
        os.close(keyboard)
        os.close(screen)
