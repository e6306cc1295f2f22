"""What happens once the time is up: look, watch, freeze, copy, let go. Each step is in the bundle before the next
begins; one that fails leaves a sentence and a remedy, and the others go on.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import time
from typing import Any, BinaryIO, ContextManager, Dict, List, Optional

from .. import __version__
from ..bundle import Bundle
from ..errors import TargetNotFound
from . import core, facts, freeze, network, probes, procfs, programs, ptrace, pyspy, room, tree, window
from .command import Command, Watch
from .options import Options


def members_of(command: Command) -> List[tree.Member]:
    """The command's tree as it is now, without what has ended and is ours to collect."""
    command.reap()
    root = command.pid if command.status is None else -1
    if isinstance(command, Watch):
        return tree.members(root)
    group = command.pid if command.own_group else None
    return tree.members(root, adopted_by=os.getpid(), group=group, without=command.helpers)


def to_end(command: Command) -> List[tree.Member]:
    """What is to be ended: all of it; with --foreground, as in timeout(1), the command alone."""
    found = members_of(command)
    return [m for m in found if m.pid == command.pid] if command.foreground else found


class Session:
    """One capture of one tree into one bundle."""

    def __init__(self, command: Command, options: Options, bundle: Bundle) -> None:
        self.command = command
        self.options = options
        self.bundle = bundle
        self.facts: Dict[int, Dict[str, Any]] = {}
        self._timings: Dict[str, Optional[float]] = {}
        self._programs = programs.LostPrograms(bundle)

    # ------------------------------------------------------------------ the steps

    def capture(self) -> None:
        """Everything but the ending of the tree. Raises OSError when the bundle cannot be written."""
        self._write_header()
        self._look()
        self._watch()
        if self._goes_on("freeze"):
            with self.bundle.step("net", "the tree"):
                table = {pid: known["fds"] for pid, known in self.facts.items() if known["fds"]}
                self.bundle.write_json("raw/proc/net.json", network.net_json(self.command.pid, table))
            self._freeze()
        self._timings.setdefault("pause_s", None)
        self.bundle.manifest["timings"] = self._timings
        self.bundle.save_manifest()

    # ------------------------------------------------------------------ look

    def _write_header(self) -> None:
        trigger: Dict[str, Any] = {"kind": "pid", "seconds": None, "signal": None}
        if not isinstance(self.command, Watch):
            trigger = {"kind": "timeout", "seconds": self.options.timeout, "signal": None}
        uname = platform.uname()
        self.bundle.manifest.update(
            {
                "tool": {"name": "postmortem", "version": __version__},
                "trigger": trigger,
                "command": [procfs.text(os.fsencode(word)) for word in self.options.command] or None,
                "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.command.started)),
                "machine": {"cpus": os.cpu_count(), "kernel": uname.release, "arch": uname.machine},
                "root_pid": self.command.pid,
                "processes": [],
            }
        )
        self.bundle.save_manifest()

    def _look(self) -> None:
        with self.bundle.step("processes", "the tree") as step:
            found = members_of(self.command)
            if not found:
                step.fail("the command ended just when its time was up", "give it a little more time with -t")
            for member in found:
                self._describe(member.pid)

    def _describe(self, pid: int) -> None:
        try:
            known = facts.process_json(pid)
        except (OSError, ValueError, KeyError):
            return  # gone between two looks
        self.facts[pid] = known
        self.bundle.write_json(f"raw/proc/{pid}/process.json", known)
        with contextlib.suppress(OSError):  # without it the analysis says what it lacks
            self._programs.keep(pid)
        self.bundle.manifest["processes"] = list(self.facts)

    # ------------------------------------------------------------------ watch

    def _watch(self) -> None:
        # a zombie with further threads is a process whose main thread alone has ended
        alive = [pid for pid, known in self.facts.items() if known["state"] not in "ZX" or len(known["threads"]) > 1]
        python = [pid for pid in alive if facts.is_python(self.facts[pid])]
        samplers = pyspy.Samplers(self.bundle, self.command)
        began = time.monotonic()
        try:
            if self.options.observe > 0:
                samplers.start(python, self.options.observe)
            with self.bundle.step("window", "the tree"):
                gils = {pid: probe for pid in python for probe in (probes.gil_probe(pid),) if probe}
                watches = [window.ProcessWatch(pid) for pid in alive]
                window.observe(watches, self.options.observe, self._pause)
                for watch in watches:
                    if watch.pid in gils:
                        watch.probes["gil"] = gils[watch.pid].finish()
                    self.bundle.write_json(f"raw/proc/{watch.pid}/window.json", watch.as_json())
            self._timings["observe_s"] = round(time.monotonic() - began, 4)
            samplers.finish()
        finally:
            samplers.close()

    def _pause(self, seconds: float) -> bool:
        """False when the root has ended: what is left to see would be its end."""
        if not self.command.pause(seconds):
            return False
        root = tree.look(self.command.pid)
        return root is not None and root.alive

    # ------------------------------------------------------------------ freeze

    def _goes_on(self, step_name: str) -> bool:
        if self.command.interrupted is None:
            return True
        name = signal.Signals(self.command.interrupted).name
        with self.bundle.step(step_name, "the tree") as step:
            step.fail(f"{name} came before the processes were copied", "let the capture finish: it takes a few seconds")
        return False

    def _freeze(self) -> None:
        machine = platform.machine()
        if machine not in ptrace.REGISTER_SETS:
            with self.bundle.step("core", "the tree") as step:
                step.fail(f"cores are not written on {machine} yet", "take one with gcore")
            return
        sources: Dict[int, core.Source] = {}
        try:
            for member in members_of(self.command):
                if member.alive:
                    self._prepare(member.pid, sources)
            if sources:
                with self.bundle.step("freeze", "the tree"):
                    self._copy(sources, machine)
        finally:
            for source in sources.values():
                source.close()

    def _prepare(self, pid: int, sources: Dict[int, core.Source]) -> None:
        with self.bundle.step("core", f"process {pid}", only_failure=True):
            try:
                sources[pid] = core.Source(pid)
            except TargetNotFound:
                if pid == self.command.pid:
                    raise
                # short-lived children end all the time: that one did is no shortcoming of the capture

    def _copy(self, sources: Dict[int, core.Source], machine: str) -> None:
        def work(freezer: freeze.Freezer) -> core.Frozen:
            limits = core.Limits(room.memory_to_hold(), self._free_space(), self.command.asked_to_end)
            return core.freeze_and_copy(freezer, sources, limits, self._open_core)

        frozen = freeze.run(work, machine)
        self._timings["pause_s"] = round(frozen.pause_s, 6)
        for pid, error in frozen.refused.items():
            with self.bundle.step("core", f"process {pid}"):
                raise error
        for pid, image in frozen.images.items():
            if pid not in self.facts:
                self._describe(pid)  # it began during the window
            with self.bundle.step("core", f"process {pid}") as step:
                if not image.on_disk:
                    with self._open_core(pid) as stream:
                        image.write(stream)
                if image.shortcomings:
                    step.fail("; ".join(image.shortcomings), "what else is in the core is right")

    def _open_core(self, pid: int) -> ContextManager[BinaryIO]:
        return self.bundle.writing(f"raw/cores/{pid}.core")

    def _free_space(self) -> int:
        return shutil.disk_usage(str(self.bundle.path)).free
