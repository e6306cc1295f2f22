"""Pipes, sockets, locks on files: one tree in which each process is stuck in its own way, and one that rests."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from ..support.diagnosing import capture_pid
from ..support.interpreters import Program

pytestmark = pytest.mark.live

#: Each part runs as a child of its own and says that it is about to get stuck by a byte on descriptor N.
STUCK = """
import fcntl, os, subprocess, sys, time
READY = int(sys.argv[2]) if len(sys.argv) > 2 else -1
FLOOD = "import sys\\nwhile True: sys.stdout.write('row of a table\\\\n')"
ECHO = "import sys\\nfor line in sys.stdin: sys.stdout.write(line * 3)"
NAP = "import sys, time; time.sleep(600)"
def say():
    os.write(READY, b"x")
def full_output():
    flood = subprocess.Popen([sys.executable, "-c", FLOOD], stdout=subprocess.PIPE)
    say()
    flood.wait()                                    # full_output
def both_ways():
    echo = subprocess.Popen([sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    say()
    while True: echo.stdin.write(b"words\\n" * 100)  # both_ways
def left_behind():
    start = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {NAP!r}])"
    starter = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE)
    starter.wait()
    say()
    starter.stdout.read()                           # left_behind
def own_end():
    reading, writing = os.pipe()
    say()
    os.read(reading, 1)                             # own_end
def locked():
    path = __file__ + ".lock"
    first, second = open(path, "w"), open(path, "w")
    fcntl.flock(first, fcntl.LOCK_EX)
    holder = subprocess.Popen([sys.executable, "-c", NAP], pass_fds=[first.fileno()])
    first.close()
    say()
    fcntl.flock(second, fcntl.LOCK_EX)              # locked
PARTS = [full_output, both_ways, left_behind, own_end, locked]
def main():
    ready, stuck = os.pipe()
    children = [subprocess.Popen([sys.executable, __file__, f.__name__, str(stuck)], pass_fds=[stuck]) for f in PARTS]
    os.close(stuck)
    for _ in PARTS: os.read(ready, 1)
    print("ready", flush=True)
    for child in children: child.wait()
if len(sys.argv) > 1: globals()[sys.argv[1]]()
else: main()
"""

#: Who waits for orders and will get them: a fork's reader of a pipe and of a pair of sockets, a filter, a pool, a pipeline.
AT_REST = """
import multiprocessing, os, socket, subprocess, sys
def serve(orders):
    while True: orders.send(orders.recv())
def read_lines(reading):
    for line in os.fdopen(reading): pass
if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    one, other = fork.Pipe()
    fork.Process(target=serve, args=(other,), daemon=True).start()
    reading, writing = os.pipe()
    fork.Process(target=read_lines, args=(reading,), daemon=True).start()
    filter = subprocess.Popen([sys.executable, "-c", "for line in __import__('sys').stdin: print(line)"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pipeline = subprocess.Popen("cat | cat", shell=True, stdin=subprocess.PIPE)
    pool = fork.Pool(2)
    pool.map(abs, range(4))
    server = socket.create_server(("127.0.0.1", 0)) if sys.version_info >= (3, 8) else None
    print("ready", flush=True)
    server.accept()
"""


def finding(report: Dict[str, Any], pattern: str, line: int) -> Dict[str, Any]:
    """The one of a pattern that blames a line of the program."""
    matching = [f for f in report["findings"] if f["pattern"] == pattern and line in [c["line"] for c in f["culprits"]]]
    assert len(matching) == 1, [(f["pattern"], f["confidence"], f["summary"]) for f in report["findings"]]
    found: Dict[str, Any] = matching[0]
    return found


def test_each_is_named_in_its_own_process(tmp_path: Path) -> None:
    """Full pipes, one way and both; an end that a daemon keeps, beyond the tree; an end that the reader keeps; a lock whose
    taker has let go and whose heir has not. Each with its line, and nothing proven but what is."""
    with Program(sys.executable, STUCK, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
        parts = {process["argv"][-2]: process["pid"] for process in report["processes"] if len(process["argv"]) == 4}

        def told(pattern: str, part: str) -> Dict[str, Any]:
            found = finding(report, pattern, program.line_of(part))
            assert parts[part] in {culprit["pid"] for culprit in found["culprits"]}
            return found

        assert told("pipe-deadlock", "full_output")["confidence"] == "proven"
        assert told("pipe-deadlock", "both_ways")["confidence"] == "proven"
        assert told("pipe-never-closed", "own_end")["confidence"] == "proven"
        daemon = told("pipe-never-closed", "left_behind")
        assert (daemon["confidence"], "as descriptor 1" in daemon["summary"]) == ("likely", True)
        locked = told("file-lock-wait", "locked")
        assert (locked["confidence"], "python" in locked["summary"].rpartition("which ")[2]) == ("likely", True)
    pipes = [r for p in report["processes"] for r in p["resources"] if r["kind"] == "pipe"]
    assert pipes
    net = json.loads((tmp_path / "bundle" / "raw" / "proc" / "net.json").read_text())
    full = [name for name, fill in net["fill"].items() if fill["capacity"] - fill["bytes"] < 4096]
    assert len(full) >= 2
    assert {name: net["fill_after"][name]["bytes"] for name in full} == {n: net["fill"][n]["bytes"] for n in full}


def test_who_waits_for_orders_is_healthy(tmp_path: Path) -> None:
    """Nothing above *possible*, and nobody noticed that their pipes were looked at."""
    with Program(sys.executable, AT_REST, tmp_path) as program:
        before = descriptors(program.pid)
        report = capture_pid(program.pid, tmp_path)
        assert descriptors(program.pid) == before
    loud: List[Any] = [f["summary"] for f in report["findings"] if f["confidence"] != "possible"]
    assert loud == []


def descriptors(pid: int) -> Dict[str, str]:
    return {name: os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
