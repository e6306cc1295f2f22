"""The steps of one capture: look, watch, freeze, copy, release.

Each step is in the bundle before the next begins. One that fails leaves a sentence and a remedy, and the others go on.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from .. import __version__
from ..bundle import Bundle, Step
from ..redaction.commands import masked_argv
from ..signalnames import signal_name
from ..workspace import checkout
from . import fallbacks, roots
from .freeze import cores, memorybudget, programs
from .observe import probes, pyspy, window
from .options import Options
from .procfs import connections, facts, parsers, sharers, tree
from .readers import How
from .run.command import Command, Watch

if TYPE_CHECKING:
    from ..foreign.processfiles import Files
    from .readers import Reader

#: Seconds after the release in which an end caused by it is noticed, at most, and seconds between two looks.
_AFTERMATH_S, _LOOK_S = 0.2, 0.03


def members_of(command: Command) -> List[tree.Member]:
    """Return the command's current tree; reaps ended children first."""
    command.reap()
    if isinstance(command, Watch):
        found = tree.members(command.pid)
        return [member for member in found if member.pid == command.pid] if command.alone else found
    group, ended = command.pid if command.own_group else None, command.status is not None
    return tree.members(command.pid, adopted_by=os.getpid(), group=group, without=command.helpers, ended=ended)


def to_end(command: Command) -> List[tree.Member]:
    """Return the processes to be ended: the tree, or with --foreground, as in timeout(1), the command alone."""
    found = members_of(command)
    return [m for m in found if m.pid == command.pid] if command.foreground else found


def _silent(text: str) -> None:
    """Ignore a step."""


def processes(count: int) -> str:
    """Return "1 process", "2 processes" and so on."""
    return "1 process" if count == 1 else f"{count} processes"


class Session:
    """One capture of one tree into one bundle."""

    def __init__(
        self,
        command: Command,
        options: Options,
        bundle: Bundle,
        reader: Reader,
        tell: Callable[[str], None] = _silent,
    ) -> None:
        self.command = command
        self.options = options
        self.bundle = bundle
        self._reader = reader
        self._tell = tell  # called with each step as it begins
        self.facts: Dict[int, Dict[str, Any]] = {}
        self._timings: Dict[str, Optional[float]] = {}
        self._root: Optional[tree.Member] = None  # the root at the first look
        self._full = False  # whether a pipe of the tree was full when it was stopped
        self._programs = programs.LostPrograms(bundle)
        self._roots = roots.Roots(bundle, reader, command.helpers)

    # ------------------------------------------------------------------ the steps

    def capture(self) -> None:
        """Make the capture, without ending the tree. Raises OSError when the bundle cannot be written at all."""
        try:
            self._capture()
        finally:
            self._roots.close()

    def _capture(self) -> None:
        memorybudget.take_descriptors()
        self._write_header()
        self._look()
        self._watch()
        if self._goes_on("freeze"):
            ties = self._connect()
            self._timings["pause_s"] = cores.capture(
                self.bundle,
                self.command,
                lambda: members_of(self.command),
                self._note_core,
                self.options.core,
                self._left(),
                how=How(self._files_of, self._reader),
            )
            self._see_what_flowed(ties)
            fallbacks.last_look(self.bundle, self.command, [p for p, k in self.facts.items() if facts.is_python(k)])
            self._tell_of_the_pause()
            self._see_whether_it_lives()
            self._roots.keep(self.facts, self.command.asked_to_end)
        self._timings.setdefault("pause_s", None)
        self.bundle.manifest["timings"] = self._timings
        self.bundle.try_to_save()

    def _left(self) -> float:
        """Return the seconds until a verdict is wanted."""
        until = self.command.hurry_until
        return self.options.budget if until is None else min(self.options.budget, max(until - time.monotonic(), 0.0))

    def _connect(self) -> Dict[str, Any]:
        """Write net.json, with the current descriptors: the window may have been long."""
        ties: Dict[str, Any] = {}
        with self.bundle.step("net", "the tree"):
            for pid, known in self.facts.items():
                now = facts.open_descriptors(pid)
                if now is not None and now != known["fds"]:
                    known["fds"] = now
                    self.bundle.write_json(f"raw/proc/{pid}/process.json", known)
            tables = {pid: known["fds"] for pid, known in self.facts.items()}
            ties = connections.net_json(self.command.pid, tables, isinstance(self.command, Watch))
            self._full = connections.is_one_full(ties)
            self.bundle.write_json("raw/proc/net.json", ties)
        with self.bundle.step("sharers", "the tree", only_failure=True):
            shared = sharers.sharers_json(
                self.command.pid, {pid: known.get("maps") for pid, known in self.facts.items()}
            )
            if shared is not None:
                self.bundle.write_json("raw/proc/sharers.json", shared)
        return ties

    def _see_what_flowed(self, ties: Dict[str, Any]) -> None:
        """Read the fill level of pipes again after the freeze: unchanged where no process reads or writes."""
        if ties.get("pipes"):
            with self.bundle.step("net", "how full the pipes are"):
                ties["fill_after"] = connections.fills(ties["pipes"])
                self.bundle.write_json("raw/proc/net.json", ties)

    def _tell_of_the_pause(self) -> None:
        pause = self._timings["pause_s"]
        if pause is not None:
            cores_there = sum(1 for pid in self.bundle.pids if self.bundle.has_core(pid))
            self._tell(f"stopped {processes(cores_there)} for {pause * 1e3:.3g} ms")

    def _see_whether_it_lives(self) -> None:
        """Record that the root has ended meanwhile, by itself or because of the capture.

        Its core may then be missing or unexpected.
        """
        before, pid = self._root, self.command.pid
        if before is None:
            return
        if self._timings["pause_s"] is not None:
            self._let_it_go_on()
        now = tree.look(pid)
        if now is not None and now.start == before.start and now.alive:
            return
        self.command.reap()
        with self.bundle.step("processes", f"process {pid}") as step:
            number = self.command.killed_by
            how = f", killed by {signal_name(number)}" if number else ""
            said = f"process {pid} ended while it was being captured{how}"
            step.fail("ended-meanwhile", said, self._remedy_for_an_end(), pid=pid, signal=number or 0)

    def _let_it_go_on(self) -> None:
        """Wait until the root waits again, has ended, or has run for a while."""
        until = time.monotonic() + _AFTERMATH_S
        while time.monotonic() < until and self.command.pause(_LOOK_S):
            now = tree.look(self.command.pid)
            if now is None or now.state in "SD":
                return

    def _remedy_for_an_end(self) -> str:
        if self._timings["pause_s"] is not None and self._full and self.command.killed_by != signal.SIGSYS:
            return (
                "use --core none: stopping a process cuts short its write to a full pipe, and a program that does not "
                "write the rest then runs on to its end"
            )
        if self._timings["pause_s"] is not None and (
            isinstance(self.command, Watch) or self.command.killed_by == signal.SIGSYS
        ):
            return (
                "use --core none if a seccomp filter of its own forbids restart_syscall(2): a stop then kills it; see dmesg "
                "for other causes"
            )
        if isinstance(self.command, Watch):
            return "run it with `postmortem capture -t` to catch it in time"
        return "if it ended by itself, give it a little more time with -t"

    # ------------------------------------------------------------------ look

    def _write_header(self) -> None:
        uname = platform.uname()
        self.bundle.manifest.update(
            {
                "tool": {"name": "postmortem", "version": __version__},
                "trigger": self.command.trigger,
                "command": list(masked_argv([parsers.text(os.fsencode(word)) for word in self.options.command]))
                or None,
                "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.command.started)),
                "machine": {"cpus": os.cpu_count(), "kernel": uname.release, "arch": uname.machine},
                "root_pid": self.command.pid,
                "checkout": self._checkout(),
                "processes": [],
            }
        )
        self.bundle.try_to_save()

    def _checkout(self) -> Optional[str]:
        found = checkout(os.environ, facts.working_directory(self.command.pid))
        return parsers.text(os.fsencode(found)) if found is not None else None

    def _look(self) -> None:
        found: List[tree.Member] = []
        with self.bundle.step("processes", "the tree") as step:
            found = members_of(self.command)
            self._root = next((m for m in found if m.pid == self.command.pid and m.alive), None)
            for member in found:
                self._describe(member.pid)
            if not self.facts:
                step.fail(
                    "ended-early", "it ended just before it could be examined", "give it a little more time with -t"
                )
        hidden = {} if isinstance(self.command, Watch) and self.command.alone else tree.hidden_children(found)
        for pid, parent in hidden.items():
            with self.bundle.step("processes", f"process {pid}") as step:
                self.bundle.write_json(f"raw/proc/{pid}/process.json", facts.hidden_json(pid, parent))
                said = f"/proc hides it from this user: all that is known is that it is a child of {parent}"
                step.fail("hidden-process", said, facts.SHOW_ALL, parent=parent)

    def _describe(self, pid: int) -> None:
        try:
            known = facts.process_json(pid)
        except (OSError, ValueError, KeyError):
            return  # ended between two looks
        known["root"] = self._roots.note(pid, known["maps"])
        self.facts[pid] = known
        with self.bundle.step("processes", f"process {pid}", only_failure=True):  # a full disk does not end the look
            self.bundle.write_json(f"raw/proc/{pid}/process.json", known)
        with contextlib.suppress(OSError):  # without the copy the analysis reports what it lacks
            self._programs.keep(pid)
        self.bundle.manifest["processes"] = list(self.facts)

    # ------------------------------------------------------------------ watch

    def _watch(self) -> None:
        # a zombie with other threads is a process of which only the main thread has ended
        alive = [pid for pid, known in self.facts.items() if known["state"] not in "ZX" or len(known["threads"]) > 1]
        python = [pid for pid in alive if facts.is_python(self.facts[pid])]
        samplers = pyspy.Samplers(self.bundle, self.command)
        began = time.monotonic()
        try:
            if self.options.observe > 0:
                samplers.start(python, self.options.observe)
            self._tell(f"watching {processes(len(alive))} for {self.options.observe:g} s")
            with self.bundle.step("window", "the tree") as step:
                asked = probes.Probes(python, bool(self.options.observe))
                seen = window.Window(alive, self.options.observe, self._alive)
                seen.observe(self._pause)
                self._hurry(step)
                for pid, answers in asked.finish().items():
                    seen.note(pid, answers)
                self.bundle.write_json("raw/proc/machine.json", seen.machine_json())
                for member in members_of(self.command):
                    self._describe_new(member.pid)
                for pid in seen.watches.keys() & self.facts.keys():  # the others have come and gone
                    self.bundle.write_json(f"raw/proc/{pid}/window.json", seen.watches[pid].as_json())
                if seen.shortcoming():
                    remedy = "run postmortem capture --pid on one of them, or use a longer --observe"
                    step.fail("too-many-to-watch", seen.shortcoming(), remedy)
            self._timings["observe_s"] = round(time.monotonic() - began, 4)
            samplers.finish()
        finally:
            samplers.close()

    def _hurry(self, step: Step) -> None:
        """End observation early after a signal; the core is still copied.

        With ``--pid`` the signal ends the whole capture instead.
        """
        command = self.command
        if command.interrupted is not None and command.hurry_until is None and not isinstance(command, Watch):
            name = signal_name(command.interrupted)
            said, remedy = f"{name} ended the window early", "let the capture finish: it takes a few seconds"
            step.leave_out("window-ended-early", said, remedy, signal=command.interrupted)
            command.hurry()

    def _alive(self) -> List[int]:
        return [member.pid for member in members_of(self.command) if member.alive]

    def _pause(self, seconds: float) -> bool:
        """Sleep; return False when the root has ended: nothing but its end would be left to see."""
        if not self.command.pause(seconds):
            return False
        root = tree.look(self.command.pid)
        return root is not None and root.alive

    def _describe_new(self, pid: int) -> None:
        """Write process.json of a process that began during the window."""
        if pid not in self.facts:
            self._describe(pid)

    # ------------------------------------------------------------------ freeze

    def _note_core(self, pid: int, stopped_by: Optional[int]) -> None:
        """Add what only the tracer knows to process.json; ``stopped_by``: the signal that had stopped the process before."""
        self._describe_new(pid)
        known = self.facts.get(pid)
        if known is None:
            return
        changed: Dict[str, Any] = {"rights": None} if facts.has_other_rights(pid, known) else {}
        if stopped_by is not None:
            changed["stopped_by"] = stopped_by
        if changed:
            known.update(changed)
            self.bundle.write_json(f"raw/proc/{pid}/process.json", self.facts[pid])

    def _files_of(self, pid: int) -> Files:
        """Return where a process's sources and libraries are."""
        self._describe_new(pid)
        return self._roots.files(self.facts.get(pid))

    def _goes_on(self, step_name: str) -> bool:
        if self.command.interrupted is None:
            return True
        name = signal_name(self.command.interrupted)
        with self.bundle.step(step_name, "the tree") as step:
            said, remedy = (
                f"{name} arrived before the processes were copied",
                "let the capture finish: it takes a few seconds",
            )
            step.fail("interrupted", said, remedy, signal=self.command.interrupted)
        return False
