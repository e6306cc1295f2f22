"""The tree under ``capture``: who belongs to it, what is noted of each, and that all of it is ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Dict

import pytest

from postmortem.capture.procfs.tree import Tree

from ..support.capturing import DRIVER, capture, environment, finished, start, state, wait_until
from ..support.targets import SLEEPER

pytestmark = pytest.mark.live


def pids_in(folder: Path) -> Dict[str, int]:
    """Programs under test write their pid into a file named after their part."""
    return {path.stem: int(path.read_text()) for path in folder.glob("*.pid")}


def test_a_child_that_ignores_term_is_killed(tmp_path: Path) -> None:
    """TERM first, KILL after -k."""
    code = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    done = capture(tmp_path, "-k", "0.3", "--", sys.executable, "-c", code, timeout=2)
    assert (done.status, done.stdout) == (124, "up\n")
    assert state(done.root) is None
    assert done.steps("end")[0]["ok"]


def test_the_signal_of_s_comes_first(tmp_path: Path) -> None:
    """-s says which; the command may take leave on it."""
    code = "import signal,sys,time\nsignal.signal(signal.SIGUSR2, lambda *_: sys.exit(print('bye', flush=True)))\n"
    done = capture(tmp_path, "-s", "USR2", "--", sys.executable, "-c", code + SLEEPER, timeout=2)
    assert (done.status, done.stdout) == (124, "bye\n")


def test_a_stopped_command_ends_too(tmp_path: Path) -> None:
    """TERM alone would wait for a CONT that nobody sends; and what is stopped is seen to be."""
    done = capture(tmp_path, "--", "sh", "-c", "kill -STOP $$; exit 3", timeout=1)
    assert done.status == 124
    assert state(done.root) is None
    window = done.raw(f"proc/{done.root}/window.json")
    assert set(window["threads"][str(done.root)]["states"]) == {"T"}
    assert done.core().exists()


ORPHAN = """
import os, subprocess, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal_file, kind = sys.argv[1], "orphan"
        with open(os.path.join(signal_file, kind + ".pid"), "w") as stream:
            stream.write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
os.wait()
time.sleep(600)
"""


def test_a_daemonised_grandchild_is_captured_and_ended(tmp_path: Path) -> None:
    """In a session of its own, its parent gone: it is handed to postmortem, not to init."""
    done = capture(tmp_path, "--", sys.executable, "-c", ORPHAN, str(tmp_path), timeout=2)
    orphan = pids_in(tmp_path)["orphan"]
    assert orphan in done.manifest["processes"]
    assert done.core(orphan).exists()
    assert state(orphan) is None
    assert done.raw(f"proc/{orphan}/process.json")["sid"] != done.raw(f"proc/{done.root}/process.json")["sid"]


def test_foreground_leaves_the_children_alone(tmp_path: Path) -> None:
    """As timeout(1) documents its --foreground."""
    done = capture(
        tmp_path,
        "--foreground",
        "--",
        "sh",
        "-c",
        'sleep 600 >/dev/null 2>&1 & echo $! >"$0"; wait',
        str(tmp_path / "c.pid"),
    )
    child = pids_in(tmp_path)["c"]
    try:
        assert done.status == 124
        assert state(done.root) is None
        assert state(child) == "S"
    finally:
        os.kill(child, signal.SIGKILL)


PARENT = """
import os, subprocess, sys
reading, writing = os.pipe()
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=reading)
server = __import__("socket").create_server(("127.0.0.1", 0))
client = __import__("socket").create_connection(server.getsockname())
accepted = server.accept()
child.wait()
"""


def test_two_processes_and_what_joins_them(tmp_path: Path) -> None:
    """Parents first; descriptors, both ends of pipes, sockets with addresses, a core and samples of each."""
    done = capture(tmp_path, "--", sys.executable, "-c", PARENT, timeout=2)
    parent, child = done.manifest["processes"]
    facts = {pid: done.raw(f"proc/{pid}/process.json") for pid in (parent, child)}
    assert (parent, facts[child]["ppid"]) == (done.root, parent)
    assert facts[child]["argv"][1:] == ["-c", "import sys; sys.stdin.read()"]
    net = done.raw("proc/net.json")
    inode = facts[child]["fds"]["0"][len("pipe:[") : -1]
    ends = {(pid, mode) for pid, _fd, mode in net["pipes"][inode]}
    assert ends == {(parent, "r"), (parent, "w"), (child, "r")}
    listening = [s for s in net["sockets"].values() if s["state"] == "LISTEN"]
    connected = [s for s in net["sockets"].values() if s["state"] == "ESTABLISHED"]
    assert [f"127.0.0.1:{net['listening_ports'][0]}"] == [s["local"] for s in listening]
    assert listening[0]["local"] in {s["remote"] for s in connected}
    for pid in (parent, child):
        assert done.core(pid).exists()
        assert (done.bundle / "raw" / "pyspy" / f"{pid}.chrometrace.json").exists(), done.steps("py-spy")


def test_the_bundle_is_private(tmp_path: Path) -> None:
    """0700 and 0600 throughout, whatever the umask: cores hold secrets. Nothing half-written is left."""
    done = capture(tmp_path, "--", "sleep", "600", umask=0)
    paths = [done.bundle, *done.bundle.rglob("*")]
    assert {p.stat().st_mode & 0o777 for p in paths if p.is_dir()} == {0o700}
    assert {p.stat().st_mode & 0o777 for p in paths if p.is_file()} == {0o600}
    assert not [p for p in paths if p.name.endswith(".part")]


BUSY = """
import sys, threading, time
def spin():
    while True:
        sum(range(500))
threading.Thread(target=spin, daemon=True, name="spinner").start()
print("up", flush=True)
for beat in range(10**6):
    time.sleep(0.05)
    print(beat, flush=True)
"""


def test_a_running_process_is_captured_and_left_running(tmp_path: Path) -> None:
    """--pid: status 0, counters, samples, the GIL's own count, a core; and it goes on."""
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None
        target.stdout.readline()
        bundle = tmp_path / "bundle"
        done = finished(start("--pid", str(target.pid), "-o", str(bundle), "--observe", "0.5"), bundle)
        assert done.status == 0, done.stderr
        before = int(target.stdout.readline())
        wait_until(lambda: int(target.stdout.readline()) > before + 20, "further signs of life")  # type: ignore[union-attr]
        window = done.raw(f"proc/{target.pid}/window.json")
        target.kill()
    threads = list(window["threads"].values())
    assert len(threads) == 2
    spinner = max(threads, key=lambda thread: thread["cpu_s"])
    assert spinner["cpu_s"] > 0.1
    assert spinner["states"].get("R", 0) > 0
    assert window["probes"]["gil"]["switches"] > 0
    assert done.core(target.pid).exists()
    assert done.manifest["trigger"]["kind"] == "pid"
    assert done.manifest["timings"]["pause_s"] > 0


def test_no_such_process(tmp_path: Path) -> None:
    """125 and a sentence."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = finished(start("--pid", str(gone.pid), "-o", str(tmp_path / "b")), tmp_path / "b")
    assert (done.status, done.stderr.count("\n")) == (125, 1)
    assert not done.bundle.exists()


def test_names_that_are_no_unicode(tmp_path: Path) -> None:
    """argv, thread names and paths are bytes; the bundle's JSON is UTF-8 all the same."""
    odd = os.fsencode(tmp_path) + b'/caf\xe9\n"x'
    os.symlink(b"/bin/sleep", odd)
    words = [os.fsencode(sys.executable), b"-c", os.fsencode(DRIVER)]
    bundle = tmp_path / "bundle"
    process = subprocess.Popen(
        [*words, b"-t", b"0.5", b"--observe", b"0.1", b"-o", os.fsencode(bundle), b"--", odd, b"600"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="backslashreplace",
    )
    done = finished(process, bundle)
    assert done.status == 124
    assert done.raw(f"proc/{done.root}/process.json")["argv"][0].endswith('/caf\\xe9\n"x')
    assert done.manifest["command"][0].endswith('/caf\\xe9\n"x')


def test_a_socket_that_waits_is_named(tmp_path: Path) -> None:
    """The system call's descriptor leads to the peer's address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port})).recv(1)"
        done = capture(tmp_path, "--", sys.executable, "-c", code, timeout=2)
    thread = done.raw(f"proc/{done.root}/window.json")["threads"][str(done.root)]
    call = thread["last_syscall"]
    assert call["name"] == "recvfrom"
    link = done.raw(f"proc/{done.root}/process.json")["fds"][str(call["args"][0])]
    row = done.raw("proc/net.json")["sockets"][link[len("socket:[") : -1]]
    assert (row["proto"], row["remote"], row["state"]) == ("tcp", f"127.0.0.1:{port}", "ESTABLISHED")


ZOMBIE = """
import os, time
if os.fork() == 0:
    os._exit(3)
time.sleep(600)
"""


def test_a_zombie_is_listed_with_what_is_left_of_it(tmp_path: Path) -> None:
    """Name, parent and state; no core is tried, and none is missed."""
    done = capture(tmp_path, "--", sys.executable, "-c", ZOMBIE, timeout=2)
    zombie = next(pid for pid in done.manifest["processes"] if pid != done.root)
    facts = done.raw(f"proc/{zombie}/process.json")
    assert (facts["state"], facts["ppid"], facts["comm"][:6]) == ("Z", done.root, "python")
    assert facts["threads"] == {str(zombie): {"comm": facts["comm"]}}
    assert not [step for step in done.manifest["steps"] if step["subject"] == f"process {zombie}"]


CHANGING = """
import os, subprocess, sys, time
sleeper = ["sleep", "600"]
first = subprocess.Popen(sleeper)
print("up", first.pid, flush=True)
while not os.path.exists(sys.argv[1]):  # the bundle: the capture has begun
    time.sleep(0.01)
while not os.path.exists(sys.argv[1] + f"/raw/proc/{first.pid}/process.json"):
    time.sleep(0.01)
first.kill()
first.wait()
second = subprocess.Popen(sleeper)
print("changed", second.pid, flush=True)
time.sleep(600)
"""


def test_who_ends_and_who_begins_during_the_window(tmp_path: Path) -> None:
    """Both are in the bundle: what was known of the one, and a core of the other, watched as soon as it was seen."""
    bundle = str(tmp_path / "bundle")
    done = capture(tmp_path, "--", sys.executable, "-c", CHANGING, bundle, timeout=1, observe=2)
    ended, begun = (int(line.split()[1]) for line in done.stdout.splitlines())
    assert done.manifest["processes"] == [done.root, ended, begun]
    assert done.raw(f"proc/{ended}/process.json")["comm"] == done.raw(f"proc/{begun}/process.json")["comm"] == "sleep"
    window = done.raw(f"proc/{begun}/window.json")
    assert window["threads"][str(begun)]["states"]["S"] > 0
    assert window["threads"][str(begun)]["last_syscall"]["name"] == "clock_nanosleep"
    assert done.core(begun).exists()
    assert not done.core(ended).exists()
    assert state(begun) is None


SERVER = """
import os, subprocess, sys, time
os.setsid()
middle = os.fork()
if middle == 0:
    subprocess.Popen(["sleep", "600"])
    print("up", flush=True)
    os._exit(0)
os.waitpid(middle, 0)
print("left", flush=True)
time.sleep(600)
"""


def test_an_orphan_of_a_running_server_is_found(tmp_path: Path) -> None:
    """--pid came after its parent had ended: its session tells where it comes from."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None
        assert [target.stdout.readline() for _ in range(2)] == ["up\n", "left\n"]
        try:
            bundle = tmp_path / "bundle"
            done = finished(start("--pid", str(target.pid), "-o", str(bundle), "--observe", "0.1"), bundle)
            orphan = next(pid for pid in done.manifest["processes"] if pid != target.pid)
            facts = done.raw(f"proc/{orphan}/process.json")
            assert (facts["comm"], facts["sid"]) == ("sleep", target.pid)
            assert facts["ppid"] != target.pid
            assert done.core(orphan).exists()
        finally:
            os.killpg(target.pid, signal.SIGKILL)


REUSING = """
import os, sys, time
sys.stdin.readline()
wanted = int(sys.argv[1])
for _attempt in range(100):
    with open("/proc/sys/kernel/ns_last_pid", "w") as last:
        last.write(str(wanted - 1))
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    if child == wanted:
        break
    os.kill(child, 9)
    os.waitpid(child, 0)
print(child, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(not os.access("/proc/sys/kernel/ns_last_pid", os.W_OK), reason="process numbers cannot be chosen")
def test_a_strangers_number_is_looked_at_again_when_another_process_has_it() -> None:
    """Strangers are passed over by their inode below /proc: the kernel gives the next process of that number another."""
    stranger = subprocess.Popen(["sleep", "600"])
    root = subprocess.Popen(
        [sys.executable, "-c", REUSING, str(stranger.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    seen = Tree(root.pid, None, None)
    child = None
    try:
        assert [member.pid for member in seen.members(())] == [root.pid]
        stranger.kill()
        stranger.wait()
        assert root.stdin is not None and root.stdout is not None
        root.stdin.write("go\n")
        root.stdin.flush()
        child = int(root.stdout.readline())
        if child != stranger.pid:
            pytest.skip("somebody else was given the number")
        assert [member.pid for member in seen.members(())] == [root.pid, child]
    finally:
        for pid in filter(None, (child, root.pid)):
            os.kill(pid, signal.SIGKILL)
        root.communicate()
