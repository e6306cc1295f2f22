"""The command: started as if nobody stood between it and the shell, waited for without using the CPU.

*Signals.* What postmortem passes on is blocked before the command exists and then taken one by one with
``sigtimedwait``: nothing is lost, no handler races, and the kernel's siginfo tells who sent it. What the terminal sent
(Ctrl-C: SI_KERNEL) has already reached a command that shares our process group; what another process sent to us alone
has not.

*Terminal.* Where there is one, the command stays in our process group: the shell then has one job, which it stops,
continues and brings to the foreground as a whole, and whose keys reach the command directly. What stops the command stops
us as well, with the same signal and not sooner: that is what the shell waits for (a pager first leaves its screen). Where
there is none, the command gets a group of its own, which takes signals as a whole.
"""

# Pathlib would be half of the fast path's time:

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
    try:  # what `signal` wraps in enumerations: those cost a quarter of all the time before the command's start
        import _signal as signal
    except ImportError:
        import signal

_FORWARDED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
    signal.SIGCONT, signal.SIGWINCH, signal.SIGALRM,
)  # fmt: skip
#: Signals that end a capture early, unless the command goes on after it; the others are only passed on.
ENDING = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT))
#: Dispositions that Python or a non-interactive shell (``cmd &``) changed, and that a command does not expect.
_RESTORED = (
    signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD,
)  # fmt: skip
#: What the keyboard and the terminal's driver stop a job with.
_STOPPING = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_SI_KERNEL = 0x80
_LONGEST_WAIT_S = 86400.0
#: Signals that end us and come within this time say the same: whoever ends a job sends several (TERM and HUP).
ONE_WISH_S = 1.0
#: What is still captured and diagnosed once an end was wished for: runners send KILL ten seconds after TERM.
HURRY_S = 6.0


class Command:
    """A started command. ``status`` is None while it runs, else as a shell would say it."""

    def __init__(self, pid: int, own_group: bool, foreground: bool, mask: set[int], demand: int | None = None) -> None:
        self.pid = pid
        self.own_group = own_group
        self.foreground = foreground  # --foreground was asked for
        self.original_mask = mask
        self.started = time.time()
        self.began = time.monotonic()  # in ``now()``
        self.status: int | None = None
        self.killed_by: int | None = None  # the signal, when that is how it ended
        #: Children of ours that are no part of the command (py-spy): pid → status, None while it runs.
        self.helpers: dict[int, int | None] = {}
        self.is_job = False  # of a shell at a terminal, together with us
        self.terminal: Terminal | None = None  # ours and the command's, when we are its foreground
        self.interrupted: int | None = None  # a signal that asked us to come to an end after the deadline
        self.demand = demand  # the signal that asks for a capture, and is not passed on
        self.demanded = False  # it has come, and was not answered yet
        #: ``--on-cancel capture``: what asks for an end makes us capture before it is passed on.
        self.captures_first = False
        self.cancelled: int | None = None  # the signal that has done so
        #: In time.monotonic() seconds: when what is still captured and diagnosed is to be there; None: nobody waits.
        self.hurry_until: float | None = None
        self._wished = float("-inf")  # when an end was wished for last
        #: While a capture on demand runs: signals still mean the command, not the capture.
        self.goes_on = False
        #: Why it is captured, as the manifest has it: {kind, seconds, signal}. None until then.
        self.trigger: dict[str, Any] | None = None
        self._stood_still = 0.0

    # ------------------------------------------------------------------ waiting

    def now(self) -> float:
        """Seconds of a steady clock that stands still while Ctrl-Z has stopped us: deadlines are counted in it."""
        return time.monotonic() - self._stood_still

    def wait(self, seconds: float | None) -> int | None:
        """Waits for the command's end, passing signals on; its status, or None when the time is up first.

        Also None when a capture was demanded meanwhile, or the job is being cancelled. Time during which Ctrl-Z had stopped
        us does not count.
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
        """Sleeps during a capture; wakes when the command ends or somebody asks for the end. True: go on."""
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
        """Whether a signal wants an end by now. Collects no children: safe while some of them are traced."""
        if not self.goes_on:
            info = signal.sigtimedwait(ENDING - {self.demand}, 0)
            if info is not None:
                self._wish(info.si_signo)
        late = self.hurry_until is not None and time.monotonic() > self.hurry_until
        return late or self.interrupted is not None

    def hurry(self) -> None:
        """Somebody wants an end: what takes no longer than ``HURRY_S`` is still done, unless it is asked for once more."""
        self.hurry_until = time.monotonic() + HURRY_S
        self.interrupted = None

    def _wish(self, number: int) -> None:
        now = time.monotonic()
        if now - self._wished > ONE_WISH_S:
            self.interrupted = number
        self._wished = now

    def wait_for_helpers(self, pids: list[int], moment: float = float("inf")) -> bool:
        """Until all of them have ended, but not beyond ``moment`` (time.monotonic()); False when not, also because
        somebody asks for the end."""
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
        """A signal that asks for an end while a child of ours works; None when the time is up, or anything else came first."""
        info = self._next_signal(seconds)
        if info is not None and info.si_signo in _STOPPING:
            self._stop(info.si_signo)
        return info.si_signo if info is not None and info.si_signo in ENDING - {self.demand} else None

    def collect_helper(self, pid: int) -> tuple[int | None, int | None] | None:
        """(exit status, None) or (None, signal) of a child of ours that has ended, else None."""
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
        """Collects every child that has ended: the command, processes handed to us, our own helpers."""
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
        """Whether the command has a group of its own whose id is certainly still that group's: it was not waited for yet."""
        return self.own_group and self.status is None

    def send(self, number: int) -> None:
        """To the command's group when it has its own, else to the command alone; to nobody once it has ended and was
        waited for: its id may be another's by then."""
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
        """Acts on one signal as the command's: it is passed on, or stops us as well."""
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
        """The terminal, or the command itself with kill(0, …), has signalled the whole group that we share."""
        return info.si_code == _SI_KERNEL or (info.si_pid == self.pid and info.si_code <= 0)

    def _stop_with_it(self) -> None:
        if not self.is_job or self.status is not None:
            return
        try:
            info = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG)
        except ChildProcessError:  # it has ended; reap() will find out how
            return
        if info is not None:
            # not with SIGSTOP: where no shell could continue us (an orphaned process group) the kernel drops the others
            self._stop(info.si_status if info.si_status in _STOPPING else signal.SIGTSTP)

    def _stop(self, number: int) -> None:
        """Ctrl-Z and the like: stop as any job would, and note how long it lasted."""
        began = time.monotonic()
        if self.own_group:
            self.send(number)
        _signal_ourselves(number)  # stops here
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
        if self.own_group:
            self.send(signal.SIGCONT)
        self._stood_still += time.monotonic() - began

    def end_alike(self) -> None:
        """Ctrl-C ends a shell's script or loop only when what it ran was killed by it too, not when that says 130."""
        number = self.killed_by
        if self.is_job and number in (signal.SIGINT, signal.SIGQUIT):
            import resource  # noqa: PLC0415

            _soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
            resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # the core that counts is the command's
            signal.signal(number, signal.SIG_DFL)
            _signal_ourselves(number)


class Watch(Command):
    """A process that somebody else started (``--pid``): captured, never signalled, never waited for."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid, False, False, block_signals())
        self.alone = False  # its descendants are left out: they are too many, or everybody

    def send(self, number: int) -> None:
        """What is sent to us is meant for us."""

    def _handle(self, info: signal.struct_siginfo) -> None:
        super()._handle(info)
        if info.si_signo in ENDING:
            self.interrupted = info.si_signo

    def reap(self) -> None:
        """Our own helpers alone: other children belong to whoever started them."""
        for pid in [pid for pid, status in self.helpers.items() if status is None]:
            try:
                ended, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
            if ended:
                self._note(ended, status)


def _signal_ourselves(number: int) -> None:
    """With a signal that is blocked until then."""
    from ... import signalling  # noqa: PLC0415

    signalling.send_to_ourselves(number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))


def _taken(demand: int | None) -> set[int]:
    """What is blocked and taken one by one. A HUP that nohup made us ignore stays ignored, by the command too."""
    wanted: set[int] = {*_FORWARDED, *_STOPPING, signal.SIGCHLD}
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        wanted.discard(signal.SIGHUP)
    return wanted if demand is None else wanted | {demand}


def block_signals(demand: int | None = None) -> set[int]:
    """Blocks what ``wait`` and ``pause`` take one by one; returns the mask as it was."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would let children vanish unseen
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, _taken(demand)))


def start(argv: list[str], *, foreground: bool = False, demand: int | None = None) -> Command:
    """Starts the command; ``demand`` is a signal that is kept from it. Raises CommandNotFound or CommandNotRunnable."""
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
        # as timeout(1); a file among the folders of PATH (ENOTDIR) is no fault of the command's
        if exc.errno == errno.ENOENT or (exc.errno == errno.ENOTDIR and "/" not in argv[0]):
            raise CommandNotFound(reason) from None
        raise CommandNotRunnable(reason) from None
    command = Command(pid, not shares, foreground, mask, demand)
    command.is_job, command.terminal = is_job, terminal
    return command


def _terminal() -> tuple[bool, Terminal | None]:
    """Whether we belong to a terminal; the terminal too, when we are its foreground."""
    try:
        opened = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False, None
    try:
        from .terminal import foreground  # noqa: PLC0415 - there is none in a pipeline

        return True, foreground(opened)
    finally:
        os.close(opened)
