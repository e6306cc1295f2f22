"""What each reader says of a process or a core, in one shape: ``Said``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from postmortem.cpython.state.interpreter import Python
from postmortem.extract.assemble.cores import from_core
from postmortem.memory import ProcMem

Row = Tuple[str, Optional[int], str, Optional[str]]  # file, line, function, its qualified name where one is told
_DEADLINE = 120


class Said(NamedTuple):
    threads: Dict[int, List[Row]]  # by tid, most recent call first; threads without Python frames are left out
    holder: Optional[int]  # tid of the thread that holds the GIL


class Failed(Exception):
    """The peer gave no answer; the message is its last line."""


def ours_live(pid: int) -> Said:
    with ProcMem(pid) as memory:
        python = Python(memory)
        states = [thread for interpreter in python.interpreters for thread in interpreter.threads]
        held = {i.gil.holder for i in python.interpreters if i.gil}
        threads = {
            s.native_id: [(f.code.filename, f.line, f.code.name, f.code.qualname) for f in s.frames] for s in states
        }
        holder = next((s.native_id for s in states if s.address in held), None)
    return Said({tid: rows for tid, rows in threads.items() if rows and tid is not None}, holder)


def ours_core(core: Path) -> Said:
    """Through the whole extraction, native stacks and merging included."""
    process = from_core(core).processes[0]
    threads = {t.tid: [(f.file, f.line, f.function, f.qualname) for f in t.python] for t in process.threads if t.python}
    holder = next((t.tid for t in process.threads if t.gil == "holds"), None)
    return Said(threads, holder)


def pyspy_live(pid: int) -> Said:
    return _pyspy("--pid", str(pid))


def pyspy_core(core: Path, _exe: Path) -> Said:
    return _pyspy("--core", str(core))


def _pyspy(*target: str) -> Said:
    program = Path(sys.executable).with_name("py-spy")
    text = _run([str(program), "dump", "--json", *target])
    threads: Dict[int, List[Row]] = {}
    holder = None
    for thread in json.loads(text):
        tid = thread["os_thread_id"] or -thread["thread_id"]  # null in cores up to 3.10
        rows: List[Row] = [(f["filename"], f["line"], f["name"], None) for f in thread["frames"]]
        if rows:
            threads[tid] = rows
        if thread["owns_gil"]:
            holder = tid
    return Said(threads, holder)


def pystack_live(pid: int) -> Said:
    return _pystack("live", str(pid))


def pystack_core(core: Path, exe: Path) -> Said:
    return _pystack("core", str(core), str(exe))


#: pystack's text shortens file names; its API does not. It runs apart: it is C++ reading somebody's memory.
_PYSTACK = """
import json, sys
from pathlib import Path
from pystack.engine import NativeReportingMode, get_process_threads, get_process_threads_for_core
if sys.argv[1] == "live":
    threads = get_process_threads(int(sys.argv[2]), stop_process=True, native_mode=NativeReportingMode.OFF)
else:
    threads = get_process_threads_for_core(Path(sys.argv[2]), Path(sys.argv[3]), native_mode=NativeReportingMode.OFF)
print(json.dumps([
    [t.tid, t.holds_the_gil == 1, [[f.code.filename, f.code.location.lineno, f.code.scope] for f in t.frames]]
    for t in threads
]))
"""


def _pystack(*arguments: str) -> Said:
    rows: List[Any] = json.loads(_run([sys.executable, "-c", _PYSTACK, *arguments]))
    threads: Dict[int, List[Row]] = {}
    holder = None
    for tid, holds, frames in rows:
        found: List[Row] = [(f[0], f[1], f[2], None) for f in reversed(frames)]
        if found:
            threads[tid] = found
        if holds:
            holder = tid
    return Said(threads, holder)


def _run(command: List[str]) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_DEADLINE, env=environment)
    if done.returncode or not done.stdout.strip():
        raise Failed((done.stderr.strip().splitlines() or ["no output"])[-1][:300])
    return done.stdout
