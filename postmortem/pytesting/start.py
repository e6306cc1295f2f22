"""The start of the watchdog, from pytest's process: it inherits the shared memory and the standard error stream alone.

The watchdog is not a child of pytest's for long: a test that waits for any child of its process (``os.wait()``), or
counts them, must not meet it. So a launcher is started that starts it, reports its process id through the page, and
ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from .. import programs, signalling
from . import page

_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
_PR_SET_PTRACER = 0x59616D61  # <linux/prctl.h>
#: First real-time signal to try: no known program uses it, nor do the kernel, glibc or pytest-timeout (SIGALRM).
_FIRST_SIGNAL = 11  # after SIGRTMIN


class Watchdog:
    """The watchdog process, as seen from pytest's. Raises pytest.UsageError if it cannot be started."""

    def __init__(self, config: pytest.Config, worker: Optional[str]) -> None:
        self.signal = _free_signal()
        xml = None if worker else getattr(config.option, "xmlpath", None)
        # interpreted as by pytest's own writer, before any test changes the directory
        self.xml = Path(os.path.abspath(os.path.expanduser(os.path.expandvars(xml)))) if xml else None  # noqa: PTH100, PTH111
        descriptor = _memory()
        try:
            self.page = page.Page(descriptor)
            self.journal = None if worker else _journal(config)
            told = _told(config, worker, self.signal)
            told["xml"] = None if self.xml is None else str(self.xml)
            told["journal"] = None if self.journal is None else self.journal.fileno()
            _launch(descriptor, told)
        finally:
            os.close(descriptor)
        if not self._pid:
            raise pytest.UsageError(
                "postmortem's watchdog did not start: see above; --postmortem-timeout 0 turns it off"
            )
        #: Its start time: it is no child, so after its end its id may belong to another process.
        self._began = signalling.begun(self._pid)
        _let_it_trace(self._pid)

    @property
    def _pid(self) -> int:
        """Return the watchdog's process id; 0 in a forked child, which has a page of its own."""
        return self.page.words[page.WATCHDOG]

    def wake(self) -> None:
        """Wake the watchdog for a limit shorter than all before."""
        if self._pid:
            with contextlib.suppress(OSError):
                signalling.send(self._pid, self._began, signal.SIGUSR1)

    def close(self) -> None:
        """End the watchdog."""
        if self._pid:
            with contextlib.suppress(OSError):
                signalling.send(self._pid, self._began, signal.SIGTERM)


def _told(config: pytest.Config, worker: Optional[str], number: int) -> Dict[str, Any]:
    """Return what the watchdog has to know, as JSON values."""
    return {
        "pid": os.getpid(),
        "paths": programs.code_folders(),
        "dir": str(folder(config)),
        "signal": number,
        "worker": worker or "",
        "run": getattr(config, "workerinput", {}).get("testrunuid", ""),
    }


def folder(config: Any) -> Path:
    """Return the directory of bundles."""
    given = config.getoption("postmortem_dir")
    base = config.invocation_params.dir if given else config.rootpath
    return Path(base / (given or config.getini("postmortem_dir") or "postmortem-bundles"))


def _journal(config: pytest.Config) -> Any:
    """Return a file for the results that must be in the JUnit file in any case; None if there is none to write.

    In pytest-xdist's controller, which runs no test, there is none either.
    """
    wanted = getattr(config.option, "xmlpath", None) and not config.pluginmanager.hasplugin("dsession")
    return tempfile.TemporaryFile() if wanted else None


def _launch(descriptor: int, told: Dict[str, Any]) -> None:
    """Start the watchdog through its launcher; raise pytest.UsageError if that fails."""
    given = [descriptor, *([] if told["journal"] is None else [told["journal"]])]
    numbers = [str(told["pid"]), *map(str, given)]
    arguments = [json.dumps(told), told["worker"], *numbers]
    words = programs.python("postmortem.pytesting.watchdog", arguments, flags=("-S",), paths=())
    for one in given:
        os.set_inheritable(one, True)
    try:
        # keep pytest's working directory, which other threads may rely on; the watchdog leaves it itself
        pid = programs.spawn("python", words, folder=None)
        os.waitpid(pid, 0)
    except (OSError, ValueError) as exc:
        raise pytest.UsageError(f"postmortem's watchdog cannot be started with {sys.executable!r}: {exc}") from None
    finally:
        for one in given:
            os.set_inheritable(one, False)


def _free_signal() -> int:
    """Return a real-time signal without a handler; raise pytest.UsageError if there is none."""
    for number in range(signal.SIGRTMIN + _FIRST_SIGNAL, signal.SIGRTMAX):
        if signal.getsignal(number) == signal.SIG_DFL:
            return number
    raise pytest.UsageError("postmortem needs a real-time signal, but all of them are in use")


def _let_it_trace(pid: int) -> None:
    """Permit the watchdog and its descendants to trace this process: prctl(2), PR_SET_PTRACER.

    Needed where Yama permits only ancestors to trace (its scope 1, Debian's and Ubuntu's).
    """
    try:
        with open(_YAMA, "rb") as stream:
            restricted = stream.read().strip() == b"1"
    except OSError:
        return
    if restricted:
        import ctypes  # noqa: PLC0415 - expensive to import

        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


def _memory() -> int:
    """Return a descriptor of zeroed memory for a page; it has no name anywhere, and closes on exec."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("postmortem", os.MFD_CLOEXEC)
    else:  # Python was built for a libc without it
        with tempfile.TemporaryFile() as stream:
            descriptor = os.dup(stream.fileno())
    os.ftruncate(descriptor, page.SIZE)
    return descriptor
