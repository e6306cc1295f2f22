"""Runs ``postmortem capture`` as its users do, in a process of its own, with the diagnosis left out.

What is under test is the capture; the diagnosis has tests of its own, and its report would only cost time here.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any, Callable, Dict, List, NamedTuple, Optional

ROOT = Path(__file__).resolve().parents[2]
#: The entry point with a diagnosis that says only that it was called.
DRIVER = """
import sys
from postmortem.__main__ import capture
def diagnose(bundle, stream, format, reports, **_):
    path = bundle.path
    stream.write(f"diagnosed {path} as {format} {list(reports)}\\n")
sys.exit(capture(sys.argv[1:], diagnose))
"""
HANG_S = 120.0  # what takes longer than this hangs


class Captured(NamedTuple):
    status: int
    stdout: str
    stderr: str
    bundle: Path

    @property
    def manifest(self) -> Dict[str, Any]:
        loaded: Dict[str, Any] = json.loads((self.bundle / "manifest.json").read_bytes())
        return loaded

    @property
    def root(self) -> int:
        return int(self.manifest["root_pid"])

    def steps(self, name: str) -> List[Dict[str, Any]]:
        return [step for step in self.manifest["steps"] if step["step"] == name]

    def raw(self, name: str) -> Any:
        return json.loads((self.bundle / "raw" / name).read_bytes())

    def core(self, pid: Optional[int] = None) -> Path:
        return self.bundle / "raw" / "cores" / f"{pid or self.root}.core"


def environment(**changes: str) -> Dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **changes}


def start(*words: str, driver: str = DRIVER, **settings: Any) -> subprocess.Popen[str]:
    """``postmortem capture WORDS``, running."""
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **settings}
    return subprocess.Popen([sys.executable, "-c", driver, *words], text=True, env=environment(), **settings)


def capture(folder: Path, *words: str, timeout: float = 0.5, observe: float = 0.2, **settings: Any) -> Captured:
    """A capture into ``folder``/bundle, run to its end."""
    bundle = folder / "bundle"
    options = ["-t", str(timeout), "--observe", str(observe), "-o", str(bundle)]
    return finished(start(*options, *words, **settings), bundle)


def finished(process: subprocess.Popen[str], bundle: Path) -> Captured:
    out, err = process.communicate(timeout=HANG_S)
    return Captured(process.returncode, out or "", err or "", bundle)


def state(pid: int) -> Optional[str]:
    """The state letter; None when the process is gone. A zombie nobody collects counts as gone."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(errors="replace")  # a process may call itself anything
    except OSError:
        return None
    letter = line[line.rindex(")") + 2]
    return None if letter in "ZX" else letter


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Looks again and again until it holds; fails with ``what`` when it does not come about."""
    until = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < until, f"in vain: {what}"
        time.sleep(0.01)


class Lines:
    """Lines of a stream as they come; none within HANG_S is a failure, not a wait for ever."""

    def __init__(self, stream: Optional[IO[str]]) -> None:
        assert stream is not None
        self._descriptor = stream.fileno()
        self._read = b""

    def next(self) -> str:
        """Return the next line."""
        while b"\n" not in self._read:
            ready, _, _ = select.select([self._descriptor], [], [], HANG_S)
            assert ready, "nothing is said any more"
            data = os.read(self._descriptor, 65536)
            assert data, f"ended after {self._read!r}"
            self._read += data
        line, _newline, self._read = self._read.partition(b"\n")
        return line.decode()

    def until(self, part: str) -> str:
        """The next line with this in it."""
        heard = [self.next()]
        while part not in heard[-1]:
            heard.append(self.next())
        return heard[-1]
