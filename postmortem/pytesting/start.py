"""Starts the watchdog, from pytest's process: with nothing of that process but its standard error stream.

It is no child of pytest's for long: a test that waits for any child of its process (``os.wait()``), or that counts them,
is not to meet it. So a launcher is started that starts it, tells its process id through the page, and ends.
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
#: Free in all programs that we know of: the kernel's and glibc's own, and pytest-timeout's SIGALRM, are others.
_FIRST_SIGNAL = 11  # after SIGRTMIN


class Watchdog:
    """The other process, as seen from here. Raises pytest.UsageError when it cannot be started."""

    def __init__(self, config: pytest.Config, worker: Optional[str]) -> None:
        self.signal = _free_signal()
        xml = None if worker else getattr(config.option, "xmlpath", None)
        # as pytest's own writer understands it, before any test changes the directory
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
                "postmortem's watchdog did not start: see above; --postmortem-timeout 0 does without"
            )
        #: It is no child of ours: should it end before us, its id may be another's.
        self._began = signalling.begun(self._pid)
        _let_it_trace(self._pid)

    @property
    def _pid(self) -> int:
        """0 in a forked child, whose page is its own."""
        return self.page.words[page.WATCHDOG]

    def wake(self) -> None:
        """There is a limit shorter than all before."""
        if self._pid:
            with contextlib.suppress(OSError):
                signalling.send(self._pid, self._began, signal.SIGUSR1)

    def close(self) -> None:
        if self._pid:
            with contextlib.suppress(OSError):
                signalling.send(self._pid, self._began, signal.SIGTERM)


def _told(config: pytest.Config, worker: Optional[str], number: int) -> Dict[str, Any]:
    """What it has to know, in JSON."""
    return {
        "pid": os.getpid(),
        "paths": programs.code_folders(),
        "dir": str(folder(config)),
        "signal": number,
        "worker": worker or "",
        "run": getattr(config, "workerinput", {}).get("testrunuid", ""),
    }


def folder(config: Any) -> Path:
    """Where bundles go."""
    given = config.getoption("postmortem_dir")
    base = config.invocation_params.dir if given else config.rootpath
    return Path(base / (given or config.getini("postmortem_dir") or "postmortem-bundles"))


def _journal(config: pytest.Config) -> Any:
    """For the results that are to be in the JUnit file whatever happens; None when no such file is wanted, or when it is
    pytest-xdist's controller that writes it, which runs no test."""
    wanted = getattr(config.option, "xmlpath", None) and not config.pluginmanager.hasplugin("dsession")
    return tempfile.TemporaryFile() if wanted else None


def _launch(descriptor: int, told: Dict[str, Any]) -> None:
    given = [descriptor, *([] if told["journal"] is None else [told["journal"]])]
    numbers = [str(told["pid"]), *map(str, given)]
    arguments = [json.dumps(told), told["worker"], *numbers]
    words = programs.python("postmortem.pytesting.watchdog", arguments, flags=("-S",), paths=())
    for one in given:
        os.set_inheritable(one, True)
    try:
        # pytest's working directory stays, other threads of its process may use it; the watchdog leaves it by itself
        pid = programs.spawn("python", words, folder=None)
        os.waitpid(pid, 0)
    except (OSError, ValueError) as exc:
        raise pytest.UsageError(f"postmortem's watchdog cannot be started with {sys.executable!r}: {exc}") from None
    finally:
        for one in given:
            os.set_inheritable(one, False)


def _free_signal() -> int:
    for number in range(signal.SIGRTMIN + _FIRST_SIGNAL, signal.SIGRTMAX):
        if signal.getsignal(number) == signal.SIG_DFL:
            return number
    raise pytest.UsageError("postmortem needs a real-time signal, and all of them are taken")


def _let_it_trace(pid: int) -> None:
    """Where Yama lets parents alone trace (its scope 1, Debian's and Ubuntu's): prctl(2), PR_SET_PTRACER. It is for the
    watchdog's descendants as well."""
    try:
        with open(_YAMA, "rb") as stream:
            restricted = stream.read().strip() == b"1"
    except OSError:
        return
    if restricted:
        import ctypes  # noqa: PLC0415 - most of what this module would cost

        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


def _memory() -> int:
    """The descriptor of such memory, zeros; it has no name anywhere, and closes on exec."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("postmortem", os.MFD_CLOEXEC)
    else:  # built for a libc without it
        with tempfile.TemporaryFile() as stream:
            descriptor = os.dup(stream.fileno())
    os.ftruncate(descriptor, page.SIZE)
    return descriptor
