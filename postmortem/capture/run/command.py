"""The command: started as by a shell, and waited for without using CPU time.

*Signals.* Those that postmortem forwards are blocked before the command exists and then taken one by one with
``sigtimedwait``: none is lost, no handler races, and siginfo shows the sender. A signal from the terminal (Ctrl-C:
SI_KERNEL) has already reached a command in our process group; one sent to us alone by another process has not.

*Terminal.* With one, the command stays in our process group: the shell then has one job, which it stops, continues and
brings to the foreground as a whole, and whose keys reach the command directly. When the command stops, we stop with the
same signal, and not earlier: the shell waits for that (a pager leaves its screen first). Without a terminal, the
command gets a process group of its own, which is signalled as a whole.
"""

from __future__ import annotations

import errno
import os
import time

from ...errors import CommandNotFound, CommandNotRunnable
from .spawn import spawn

TYPE_CHECKING = False  # typing itself takes milliseconds to import
if TYPE_CHECKING:
    import signal
    from typing import Any

    from .terminal import Terminal
else:
    try:  # the module that `signal` wraps in enumerations, which take a quarter of the time before the command's start
        import _signal as signal
    except ImportError:
        import signal

_FORWARDED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGCONT, signal.SIGWINCH, signal.SIGALRM,
)  # fmt: skip
#: Signals that end a capture early, unless the command continues after it; the others are only forwarded.
ENDING = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT))
#: Signals whose dispositions Python or a non-interactive shell (``cmd &``) has changed, to be restored for the command.
_RESTORED = (
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD,
)  # fmt: skip
#: Signals with which the keyboard and the terminal's driver stop a job.
_STOPPING = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_SI_KERNEL = 0x80
_LONGEST_WAIT_S = 86400.0
#: Seconds within which several ending signals count as one request: job runners send TERM and HUP together.
ONE_WISH_S = 1.0
#: Seconds for capture and diagnosis after an ending signal: runners send KILL ten seconds after TERM.
HURRY_S = 6.0


class Command:
    """A started command; ``status`` is its exit status as in a shell (128+N for signal N), None while it runs."""

    def __init__(self, pid: int, own_group: bool, foreground: bool, mask: set[int], demand: int | None = None) -> None:
        self.pid = pid
        self.own_group = own_group
        self.foreground = foreground  # --foreground was asked for
        self.original_mask = mask
        self.started = time.time()
        self.began = time.monotonic()  # in the clock of ``now()``
        self.status: int | None = None
        self.killed_by: int | None = None  # the signal that killed it
        #: Children of ours outside of the command, such as py-spy: pid → exit status, None while it runs.
        self.helpers: dict[int, int | None] = {}
        self.is_job = False  # part of a shell's job at a terminal, together with us
        self.terminal: Terminal | None = None  # shared with the command; None unless we are in its foreground
        self.interrupted: int | None = None  # an ending signal received after the deadline
        self.demand = demand  # the signal that requests a capture; it is not forwarded
        self.demanded = False  # that signal was received, and not yet answered
        #: ``--on-cancel capture``: an ending signal starts a capture before it is forwarded.
        self.captures_first = False
        self.cancelled: int | None = None  # the ending signal that started it
        #: time.monotonic() at which capture and diagnosis are to be finished; None: no ending signal was received.
        self.hurry_until: float | None = None
        self._wished = float("-inf")  # time of the last ending signal
        #: Set while a capture on demand runs: signals are still forwarded to the command.
        self.goes_on = False
        #: Reason of the capture, as in the manifest: {kind, seconds, signal}; None before.
        self.trigger: dict[str, Any] | None = None
        self._stood_still = 0.0

    # ------------------------------------------------------------------ waiting

    def now(self) -> float:
        """Return the seconds of a steady clock that excludes the time in which Ctrl-Z had stopped us; deadlines use it."""
        return time.monotonic() - self._stood_still

    def wait(self, seconds: float | None) -> int | None:
        """Wait for the command's end, forwarding signals; return its status, or None when ``seconds`` pass first.

        Also None when a capture was requested meanwhile, or the job is being cancelled. Time stopped by Ctrl-Z does not
        count.
        """
        until = None if seconds is None else self.now() + seconds
        while True:
            self.reap()
            if self.status is not None:
                return self.status
            left = _LONGEST_WAIT_S if until is None else until - self.now()
            if left <= 0 or self.demanded or self.cancelled is not None or self.interrupted is not None:
                return None
            info = self._next_signal(min(left, _LONGEST_WAIT_S))
            if info is not None:
                self._handle(info)

    def pause(self, seconds: float) -> bool:
        """Sleep during a capture; return False early when the command ends or an ending signal is received, else True."""
        until = self.now() + seconds
        while self.interrupted is None:
            info = self._next_signal(max(until - self.now(), 0.0))
            if info is None:
                return True
            if info.si_signo == signal.SIGCHLD and self._has_just_ended():
                return False
            if self.goes_on or info.si_signo in (signal.SIGCHLD, self.demand, *_STOPPING):
                self._handle(info)
            elif info.si_signo in ENDING:
                self._wish(info.si_signo)
        return False

    def asked_to_end(self) -> bool:
        """Return whether an ending signal was received, or the time granted after one is over.

        Reaps no child: safe while some of them are traced.
        """
        if not self.goes_on:
            info = signal.sigtimedwait(ENDING - {self.demand}, 0)
            if info is not None:
                self._wish(info.si_signo)
        late = self.hurry_until is not None and time.monotonic() > self.hurry_until
        return late or self.interrupted is not None

    def hurry(self) -> None:
        """Set the deadline ``HURRY_S`` from now after an ending signal; the next ending signal interrupts."""
        self.hurry_until = time.monotonic() + HURRY_S
        self.interrupted = None

    def _wish(self, number: int) -> None:
        now = time.monotonic()
        if now - self._wished > ONE_WISH_S:
            self.interrupted = number
        self._wished = now

    def wait_for_helpers(self, pids: list[int], moment: float = float("inf")) -> bool:
        """Wait until all of these helpers have ended; return False at ``moment`` (time.monotonic()) or an ending signal."""
        while True:
            self.reap()
            if all(self.helpers.get(pid, 0) is not None for pid in pids):
                return True
            left = moment - time.monotonic()
            if left <= 0 or self.interrupted is not None:
                return False
            info = self._next_signal(min(left, _LONGEST_WAIT_S))
            if info is not None and info.si_signo in _STOPPING:
                self._stop(info.si_signo)
            elif info is not None and info.si_signo in ENDING - {self.demand}:
                self._wish(info.si_signo)

    def next_ending(self, seconds: float) -> int | None:
        """Wait for one signal while a child of ours works; return it if it is an ending one, else None.

        None also when ``seconds`` pass without a signal.
        """
        info = self._next_signal(seconds)
        if info is not None and info.si_signo in _STOPPING:
            self._stop(info.si_signo)
        return info.si_signo if info is not None and info.si_signo in ENDING - {self.demand} else None

    def collect_helper(self, pid: int) -> tuple[int | None, int | None] | None:
        """Return (exit status, None) or (None, signal) of a helper that has ended, else None."""
        self.reap()
        code = self.helpers.get(pid)
        return None if code is None else (None, code - 128) if code > 128 else (code, None)

    def _next_signal(self, seconds: float) -> signal.struct_siginfo | None:
        return signal.sigtimedwait(_taken(self.demand), seconds)

    def _has_just_ended(self) -> bool:
        before = self.status
        self.reap()
        return before != self.status

    def reap(self) -> None:
        """Reap every child that has ended: the command, adopted processes, our helpers."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._note(pid, status)

    def _note(self, pid: int, status: int) -> None:
        killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if killed_by is None else 128 + killed_by
        if pid == self.pid:
            self.status, self.killed_by = code, killed_by
        elif pid in self.helpers:
            self.helpers[pid] = code

    # ------------------------------------------------------------------ signals

    @property
    def leads_group(self) -> bool:
        """Whether the command has a process group of its own whose id cannot have been reused: it was not waited for yet."""
        return self.own_group and self.status is None

    def send(self, number: int) -> None:
        """Send a signal to the command's own group, else to the command alone.

        Does nothing once the command was waited for: its pid may be reused by then.
        """
        if self.status is not None:
            return
        from ... import signalling  # noqa: PLC0415 - most commands are never signalled

        try:
            if self.own_group:
                signalling.send_to_group(self.pid, number)
            else:
                signalling.send_to_child(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def _handle(self, info: signal.struct_siginfo) -> None:
        """Act on one signal for the command: forward it, or stop with the job."""
        number = info.si_signo
        if number == self.demand:
            self.demanded = True
        elif number == signal.SIGCHLD:
            self._stop_with_it()
        elif number in _STOPPING and not self.is_job:
            self._stop(number)
        elif self.own_group or not self._came_to_both(info):
            if self.captures_first and self.cancelled is None and number in ENDING:
                self.cancelled, self._wished = number, time.monotonic()
            else:
                self.send(number)

    def _came_to_both(self, info: signal.struct_siginfo) -> bool:
        """Return whether the terminal, or the command with kill(0, …), has signalled the group that we share with it."""
        return info.si_code == _SI_KERNEL or (info.si_pid == self.pid and info.si_code <= 0)

    def _stop_with_it(self) -> None:
        if not self.is_job or self.status is not None:
            return
        try:
            info = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG)
        except ChildProcessError:  # it has ended; reap() will collect it
            return
        if info is not None:
            # not SIGSTOP: the kernel drops the other signals where no shell could continue us (an orphaned process
            # group)
            self._stop(info.si_status if info.si_status in _STOPPING else signal.SIGTSTP)

    def _stop(self, number: int) -> None:
        """Stop this process as a job at Ctrl-Z does, and record how long it lasted."""
        began = time.monotonic()
        if self.own_group:
            self.send(number)
        _signal_ourselves(number)  # this process stops here
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        if self.own_group:
            self.send(signal.SIGCONT)
        self._stood_still += time.monotonic() - began

    def end_alike(self) -> None:
        """End by the signal that killed the command, if that was INT or QUIT at a terminal.

        A shell ends its script or loop at Ctrl-C only if its child was killed by the signal, not if it exits with 130.
        """
        number = self.killed_by
        if self.is_job and number in (signal.SIGINT, signal.SIGQUIT):
            import resource  # noqa: PLC0415

            _soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
            resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # the command's core is the one that counts
            signal.signal(number, signal.SIG_DFL)
            _signal_ourselves(number)


class Watch(Command):
    """A process that we did not start (``--pid``): captured, never signalled, never waited for."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid, False, False, block_signals())
        self.alone = False  # its descendants are left out: too many, or every process

    def send(self, number: int) -> None:
        """Do nothing: signals that we receive are for us."""

    def _handle(self, info: signal.struct_siginfo) -> None:
        super()._handle(info)
        if info.si_signo in ENDING:
            self.interrupted = info.si_signo

    def reap(self) -> None:
        """Reap our own helpers only: other children belong to our parent program."""
        for pid in [pid for pid, status in self.helpers.items() if status is None]:
            try:
                ended, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
            if ended:
                self._note(ended, status)


def _signal_ourselves(number: int) -> None:
    """Send ourselves a signal that is blocked until now."""
    from ... import signalling  # noqa: PLC0415

    signalling.send_to_ourselves(number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))


def _taken(demand: int | None) -> set[int]:
    """Return the signals that are blocked and taken one by one; not a HUP that nohup made us ignore."""
    wanted: set[int] = {*_FORWARDED, *_STOPPING, signal.SIGCHLD}
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        wanted.discard(signal.SIGHUP)
    return wanted if demand is None else wanted | {demand}


def block_signals(demand: int | None = None) -> set[int]:
    """Block the signals that ``wait`` and ``pause`` take one by one; return the previous mask."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it were ignored, children would vanish without a status
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, _taken(demand)))


def start(argv: list[str], *, foreground: bool = False, demand: int | None = None) -> Command:
    """Start the command; ``demand``: a signal that requests a capture. Raises CommandNotFound, CommandNotRunnable."""
    if not argv[0]:
        raise CommandNotFound(f"cannot run '': {os.strerror(errno.ENOENT)}")
    mask = block_signals(demand)
    is_job, terminal = _terminal()
    shares = foreground or is_job
    try:
        pid = spawn(argv, mask, _RESTORED, own_group=not shares)
    except OSError as exc:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        reason = f"cannot run {argv[0]!r}: {os.strerror(exc.errno or 0)}"
        # as timeout(1) does; ENOTDIR from a file in PATH does not mean that the command cannot be run
        if exc.errno == errno.ENOENT or (exc.errno == errno.ENOTDIR and "/" not in argv[0]):
            raise CommandNotFound(reason) from None
        raise CommandNotRunnable(reason) from None
    command = Command(pid, not shares, foreground, mask, demand)
    command.is_job, command.terminal = is_job, terminal
    return command


def _terminal() -> tuple[bool, Terminal | None]:
    """Return (whether we have a controlling terminal, that terminal if we are in its foreground)."""
    try:
        opened = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False, None
    try:
        from .terminal import foreground  # noqa: PLC0415 - there is none in a pipeline

        return True, foreground(opened)
    finally:
        os.close(opened)
