"""Fallbacks for processes that left no core.

- A last look by py-spy, while the process lives, if it has no samples yet.
- The kernel's own core, if the tree is to be ended anyway: a signal ends the process.

What /proc shows remains in any case. Each attempt is a step of the manifest.
"""

from __future__ import annotations

import contextlib
import signal
import time
from typing import BinaryIO, Callable, ContextManager, Iterable, List

from .. import signalling
from ..bundle import Bundle, core_name
from .freeze import kernelcore
from .observe import pyspy
from .procfs.tree import Member
from .run.command import Command

#: Seconds of the last look, and the time within which py-spy must begin.
_LAST_LOOK_S = 0.5
#: Number of cores by the kernel at most, and seconds after which no further one begins.
_MOST_CORES = 8
_CORES_S = 10.0


def without_core(bundle: Bundle) -> List[int]:
    """Return the processes whose core failed, in the order of the manifest."""
    failed = [step["subject"] for step in bundle.failed_steps if step["step"] in ("core", "freeze")]
    every = any(not subject.startswith("process ") for subject in failed)
    return [pid for pid in bundle.pids if not bundle.has_core(pid) and (every or f"process {pid}" in failed)]


def last_look(bundle: Bundle, command: Command, python: Iterable[int]) -> None:
    """Run py-spy on those of ``python`` that have neither a core nor samples, and whose sampling has not failed."""
    tried = {step["subject"] for step in bundle.failed_steps if step["step"] == "py-spy"}
    lacking = set(without_core(bundle)).intersection(python)
    pids = [pid for pid in sorted(lacking) if f"process {pid}" not in tried and not _sampled(bundle, pid)]
    if not pids:
        return
    samplers = pyspy.Samplers(bundle, command)
    try:
        samplers.start(pids, _LAST_LOOK_S)
        command.pause(_LAST_LOOK_S)
        samplers.finish()
    finally:
        samplers.close()


def _sampled(bundle: Bundle, pid: int) -> bool:
    return bundle.folder.has(f"raw/pyspy/{pid}.chrometrace.json")


def kernel_cores(bundle: Bundle, command: Command, members: Callable[[], List[Member]]) -> None:
    """End the processes of ``members`` that left no core with a core by the kernel.

    For a tree that is ended right after this.
    """
    if command.interrupted is not None or command.hurry_until is not None:
        return
    lacking = set(without_core(bundle))
    targets = [member for member in members() if member.alive and member.pid in lacking]
    _hold(targets[:_MOST_CORES])
    until = time.monotonic() + _CORES_S
    for position, member in enumerate(targets):
        with bundle.step("kernel-core", f"process {member.pid}") as step:
            if position >= _MOST_CORES:
                said = f"the kernel was made to dump the cores of {_MOST_CORES} processes at most"
                step.fail("too-many-cores", said, most=_MOST_CORES)
            elif time.monotonic() > until or command.interrupted is not None:
                step.fail("no-time-for-core", "there was no time for the kernel to dump a core")
            else:
                kernelcore.take(command, member, _opener(bundle, member.pid), bundle.folder.free)


def _opener(bundle: Bundle, pid: int) -> Callable[[], ContextManager[BinaryIO]]:
    return lambda: bundle.writing(core_name(pid))


def _hold(targets: List[Member]) -> None:
    """Stop all processes first, so that none reacts to the end of another; each core still shows its process's wait."""
    for member in targets if len(targets) > 1 else ():
        with contextlib.suppress(PermissionError):
            signalling.send(member.pid, member.start, signal.SIGSTOP)
