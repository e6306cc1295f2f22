"""Work on foreign input in a child process, so that whatever ends it does not end its parent.

A core, a bundle or a library may be made to crash a decoder, to use up all memory, or to be parsed without end. So it
is parsed in a forked child that shares the terminal, the streams and the process group with its parent. The parent
forwards signals, waits, and reports how the child ended: it still has the tree to end and the bundle to keep.

Sources: fork(2), prctl(2) PR_SET_PDEATHSIG, proc(5) oom_score_adj.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Callable, Dict, Iterable, List, NamedTuple, NoReturn, Optional, Tuple

from . import signalling
from .signalnames import signal_name

_PR_SET_PDEATHSIG = 1
#: Seconds that the child has to end after an ending signal was forwarded, or after it was killed.
_PATIENCE_S = 3.0
_LONGEST_WAIT_S = 3600.0


class Ended(NamedTuple):
    """The end of a child.

    - ``status``: exit status; None when a signal or its deadline ended it
    - ``signal``: the number of that signal
    - ``late``: killed at its deadline
    - ``asked``: the ending signal that we received meanwhile
    """

    status: Optional[int]
    signal: Optional[int] = None
    late: bool = False
    asked: Optional[int] = None

    @property
    def reason(self) -> Optional[str]:
        """What ended the child, as the end of a sentence; None when it exited."""
        if self.late:
            return "did not finish in time"
        if self.signal is None:
            return None
        name = signal_name(self.signal)
        hint = ", perhaps because memory ran out" if self.signal == signal.SIGKILL else ""
        return f"was ended by {name}{hint}"


class Waiting(NamedTuple):
    """The parent's way of waiting.

    - ``next_signal(seconds)``: number of an ending signal; None when time is up or the child has changed
    - ``collect(pid)``: (exit status, None) or (None, signal) of a child that has ended, else None
    - ``started(pid)``: called once the child exists
    - ``patience_s``: seconds that the child has to end after a signal was forwarded
    """

    next_signal: Callable[[float], Optional[int]]
    collect: Callable[[int], Optional[Tuple[Optional[int], Optional[int]]]]
    started: Callable[[int], object] = id
    patience_s: float = _PATIENCE_S


def run_apart(work: Callable[[], int], waiting: Waiting, until: float = float("inf")) -> Ended:
    """Run ``work`` in a child; its result is the child's exit status.

    ``until``: time.monotonic() at which the child is killed. Raises OSError when no child can be started.
    """
    _flush()  # else the child would write the buffers again
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _be_the_child(work, parent)
    waiting.started(pid)
    asked: Optional[int] = None
    end_by, late = until, False
    while True:
        status = waiting.collect(pid)
        if status is not None:
            return Ended(None if late else status[0], status[1], late, asked)
        left = end_by - time.monotonic()
        if left <= 0:
            signalling.send_to_child(pid, signal.SIGKILL)  # it was not reaped: the pid is still its own
            late = late or asked is None
            if time.monotonic() > end_by + _PATIENCE_S:  # in a system call that nothing interrupts: it is left behind
                return Ended(None, None, True, asked)
            left = 0.05
        number = waiting.next_signal(min(left, _LONGEST_WAIT_S))
        if number is not None:
            asked = asked or number
            end_by = min(end_by, time.monotonic() + waiting.patience_s)
            signalling.send_to_child(pid, number)


def _be_the_child(work: Callable[[], int], parent: int) -> NoReturn:
    status = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:  # the parent has ended already
            os._exit(1)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as stream:
            stream.write("1000")
        status = work()
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else 1
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except BaseException:  # POSTMORTEM_DEBUG does not catch it
        import traceback  # noqa: PLC0415

        traceback.print_exc()
    finally:
        _flush()
        os._exit(status)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


# ---------------------------------------------------------------------- a command as a whole

_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_AT = struct.Struct("<q")
#: Prefix of private folders; the pids of the parent and of the child that made them follow.
_PREFIX = "postmortem-private-"
#: Seconds within which several signals count as one request.
_ONE_WISH_S = 1.0


class Progress:
    """The target that a command works on, in memory shared with the child, and the targets that have ended a child before."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, _AT.size)
        self.ended: Dict[int, str] = {}
        #: Complaints about targets before this index were reported by a child that has ended since.
        self.told = 0
        self.note(-1)

    def note(self, index: int) -> None:
        """Record that the child works on this target; -1: on none."""
        _AT.pack_into(self._shared, 0, index)

    @property
    def at(self) -> int:
        """Index of the target that the child worked on; -1: none."""
        return int(_AT.unpack_from(self._shared, 0)[0])


#: The progress of this process's command, which may be supervised or not.
progress = Progress()


def supervise(command: Callable[[], int], *, interactive: bool = False) -> int:
    r"""Run a command in a child; return its exit status.

    A target that ends the child is reported in one sentence (``progress.ended``), and the command is run again for the
    others. An ending signal is forwarded to the child, which removes what it has unpacked; then this process ends by
    the same signal.

    ``interactive``: the keys Ctrl-C and Ctrl-\ are for the program that the child runs.
    """
    wanted = (signal.SIGTERM, signal.SIGHUP) if interactive else _ENDING

    def next_signal(seconds: float) -> Optional[int]:
        info = signal.sigtimedwait((*wanted, signal.SIGCHLD), seconds)
        return info.si_signo if info is not None and info.si_signo in wanted else None

    while True:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (*_ENDING, signal.SIGCHLD))
        try:
            ended = run_apart(functools.partial(_interruptible, command, before), Waiting(next_signal, _collect))
        except OSError:  # no child can be started
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            return command()
        if ended.status is None or ended.asked is not None:
            _remove_folders()
        if ended.asked is not None and (ended.status is None or ended.asked != signal.SIGINT):
            _end_by(ended.asked)
        while signal.sigtimedwait((signal.SIGINT, signal.SIGQUIT), 0) is not None:
            pass  # keys pressed for the child
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if ended.status is not None:
            return ended.status
        if progress.at < 0 or progress.at in progress.ended:
            sys.stderr.write(f"postmortem: its worker process {ended.reason}; this is a defect of postmortem\n")
            return 1
        progress.told = progress.at
        progress.ended[progress.at] = (
            f"the process that read it {ended.reason}: it is damaged, or crafted to cause this"
        )
        progress.note(-1)


def _interruptible(command: Callable[[], int], mask: Iterable[int]) -> int:
    heard: List[float] = []

    def interrupt(number: int, _frame: object) -> None:
        """Raise KeyboardInterrupt, once for a signal sent by both the terminal and the parent."""
        now = time.monotonic()
        if not heard or now - heard[-1] > _ONE_WISH_S:
            heard.append(now)
            raise KeyboardInterrupt(number)

    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return command()


def _collect(pid: int) -> Optional[Tuple[Optional[int], Optional[int]]]:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    return (None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), None)


def _end_by(number: int) -> None:
    """End by a signal's default action; does nothing where it is ignored."""
    signal.signal(number, signal.SIG_DFL)
    signalling.send_to_ourselves(number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))


def private_folder() -> Path:
    """Make a private temporary folder, which ``supervise`` removes if we are killed. Raises OSError."""
    import tempfile  # noqa: PLC0415 - there is seldom one

    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getppid()}-{os.getpid()}-"))


def _remove_folders() -> None:
    """Remove the private folders of a killed child."""
    import shutil  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}{os.getpid()}-*"):
        if left.lstat().st_uid == os.geteuid():
            shutil.rmtree(str(left), ignore_errors=True)
