"""The cores of a tree: each process prepared while it runs, all stopped at once, copied, let go, written."""

from __future__ import annotations

import platform
import shutil
from typing import BinaryIO, Callable, ContextManager, Dict, List, Optional

from ..bundle import Bundle
from ..errors import TargetNotFound
from . import core, freeze, ptrace, room
from .command import Command
from .tree import Member


def capture(
    bundle: Bundle, command: Command, members: Callable[[], List[Member]], note: Callable[[int], None]
) -> Optional[float]:
    """Returns how long the tree stood still, in seconds; None when it did not. ``note(pid)`` is called for each process
    that has a core, once nothing is stopped any more."""
    machine = platform.machine()
    if machine not in ptrace.REGISTER_SETS:
        with bundle.step("core", "the tree") as step:
            step.fail(f"cores are not written on {machine} yet", "take one with gcore")
        return None
    sources: Dict[int, core.Source] = {}
    pause: Optional[float] = None
    try:
        for member in members():
            if member.alive:
                _prepare(bundle, member.pid, member.pid == command.pid, sources)
        if sources:
            with bundle.step("freeze", "the tree"):
                pause = _copy(bundle, command, sources, machine, note)
    finally:
        for source in sources.values():
            source.close()
    return pause


def _prepare(bundle: Bundle, pid: int, is_root: bool, sources: Dict[int, core.Source]) -> None:
    with bundle.step("core", f"process {pid}", only_failure=True):
        try:
            sources[pid] = core.Source(pid)
        except TargetNotFound:
            if is_root:
                raise
            # short-lived children end all the time: that one did is no shortcoming of the capture


def _copy(
    bundle: Bundle, command: Command, sources: Dict[int, core.Source], machine: str, note: Callable[[int], None]
) -> float:
    def open_core(pid: int) -> ContextManager[BinaryIO]:
        return bundle.writing(f"raw/cores/{pid}.core")

    def work(freezer: freeze.Freezer) -> core.Frozen:
        free = shutil.disk_usage(str(bundle.path)).free
        limits = core.Limits(room.memory_to_hold(), free, command.asked_to_end)
        return core.freeze_and_copy(freezer, sources, limits, open_core)

    frozen = freeze.run(work, machine)
    for pid, error in frozen.refused.items():
        with bundle.step("core", f"process {pid}"):
            raise error
    for pid, image in frozen.images.items():
        note(pid)
        with bundle.step("core", f"process {pid}") as step:
            if not image.on_disk:
                with open_core(pid) as stream:
                    image.write(stream)
            if image.shortcomings:
                step.fail("; ".join(image.shortcomings), "what else is in the core is right")
    return round(frozen.pause_s, 6)
