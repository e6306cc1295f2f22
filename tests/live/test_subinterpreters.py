"""Several interpreters in one process: every thread's whole stack, whichever interpreter it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import pytest

from postmortem.extract.assemble.cores import from_core

from ..support.interpreters import Program, matrix
from ..support.takingcores import kernel_core

pytestmark = [pytest.mark.live, pytest.mark.parametrize("python", matrix())]

PROGRAM = """
import os, sys, threading, time
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
idle, first, second = interpreters.create(), interpreters.create(), interpreters.create()
def code(name, fd):
    return f"def {name}():\\n    import os, time\\n    os.write({fd}, b'x')\\n    time.sleep(1000)\\n{name}()\\n"
reading, writing = os.pipe()
def called_by_worker():
    interpreters.run_string(second, code("in_second", writing))
def plain():
    os.write(writing, b"x")
    time.sleep(1000)
def called_by_main():
    interpreters.run_string(first, code("in_first", writing))
def announce():
    while len(os.read(reading, 1)) and announce.left > 1:
        announce.left -= 1
    time.sleep(0.3)  # for the last steps into sleep(), which no handshake can see
    print("ready", flush=True)
announce.left = 3
for target in (called_by_worker, plain, announce):
    threading.Thread(target=target, name=target.__name__, daemon=True).start()
called_by_main()
"""


def test_every_thread_shows_what_it_runs_in_every_interpreter(python: Any, tmp_path: Path) -> None:
    """The main thread stands beside the others, with its own frames below those of the sub-interpreter; a worker's
    sub-interpreter is the worker's, although the main thread made it. Interpreters are listed, the main one first."""
    with Program(python, PROGRAM, tmp_path, cwd=tmp_path) as program:
        core = kernel_core(program, tmp_path)
    process = from_core(core).processes[0]
    stacks: Dict[str, List[str]] = {t.name or "?": [f.function for f in t.python] for t in process.threads}
    assert process.interpreters[0].id == 0
    assert len(process.interpreters) == 4
    assert stacks["MainThread"] == ["in_first", "<module>", "called_by_main", "<module>"]
    assert stacks["called_by_worker"][:3] == ["in_second", "<module>", "called_by_worker"]
    assert stacks["plain"][0] == "plain"
    main = next(t for t in process.threads if t.is_main)
    assert main.name == "MainThread"
