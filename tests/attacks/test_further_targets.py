"""Targets of another user that change, block, lie and forge while root captures them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import pytest

from . import further
from .further import Place, captured, running

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and another user beside it")]

UP = "print('up', flush=True)\n"
SLEEP = UP + "import time\ntime.sleep(600)\n"


@pytest.fixture
def place() -> Iterator[Place]:
    with further.place() as made:
        yield made


# ---------------------------------------------------------------------- names

NAMES = {
    "magic link of the reader's own": "/proc/self/fd/0",
    "link of the reader's own": "/proc/self/root{hidden}",
    "root's working directory": "/proc/1/cwd{hidden}",
    "root's root": "/proc/1/root{hidden}",
    "memory of the machine": "/proc/kcore",
    "memory of the reader": "/proc/self/mem",
    "environment of the first process": "/proc/1/environ",
    "stream of the reader": "/dev/stdin",
    "descriptor of the reader": "/dev/fd/3",
    "device that never ends": "/dev/zero",
    "a way through a file": "{app}/../../ours/secret.py",
    "lone surrogates": "/tmp/\ud800\udfff.py",
    "undecodable": "/tmp/\udcff\udc80.py",
    "with a zero": "{hidden}\0.py",
    "very long": "/tmp/" + "x" * 70_000 + ".py",
    "orders to a terminal": "/tmp/\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202e.py",
}


def test_names_of_sources_that_lead_into_the_reader_or_the_kernel(place: Place) -> None:
    """A thread for each: magic links of /proc, devices, the kernel's own files, ways through files, and names that no file
    can have. None of them is opened as root would, none is shown raw, and each thread has its stack."""
    names = [name.format(hidden=place.hidden, app=place.theirs / "app.py") for name in NAMES.values()]
    program = f"""
import threading, time
def stand(name):
    known = {{"time": time}}
    exec(compile("\\n\\n\\ndef stand():\\n    time.sleep(600)\\n", name.replace("\\0", ""), "exec"), known)
    code = known["stand"].__code__.replace(co_filename=name)
    known["stand"].__code__ = code
    return known["stand"]
for name in {names!r}:
    threading.Thread(target=stand(name), daemon=True).start()
time.sleep(0.1)
{SLEEP}"""
    with running(place, program) as pid:
        report = captured(pid, place.base / "bundle")
    (process,) = report["processes"]
    assert len([t for t in process["threads"] if any(f["function"] == "stand" for f in t["python"])]) == len(names)


# ---------------------------------------------------------------------- what a target is, or becomes, meanwhile

FULL_TABLE = """
import os, resource, socket, time
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
kept = []
try:
    while True:
        kept.append(socket.socketpair())
        name = f"gone-{len(kept)}-\\x1b]0;x\\x07\\n::error::\\u202e"
        kept.append(os.open(name, os.O_CREAT | os.O_RDWR))
        os.unlink(name)
        kept.append(os.memfd_create("\\x1b[2J\\n##vso[x]"))
except OSError:
    pass
os.write(1, b"up\\n")
time.sleep(600)
"""
CUT_OFF = """
import ctypes, mmap, os, threading, time
with open("cut", "wb") as stream:
    stream.write(bytes(64 << 20))
stream = open("cut", "r+b")
view = mmap.mmap(stream.fileno(), 0)
private = mmap.mmap(stream.fileno(), 0, flags=mmap.MAP_PRIVATE)
private[0] = private[40 << 20] = 7
class Held:
    __slots__ = ("inner",)
held = Held()
# an object that the reader follows lies in what is cut off
ctypes.cast(id(held), ctypes.POINTER(ctypes.c_void_p))[2] = ctypes.addressof(ctypes.c_char.from_buffer(view, 32 << 20))
os.truncate("cut", 4096)
lock = threading.Lock()
lock.acquire()
def wait(held):
    lock.acquire()
threading.Thread(target=wait, args=(held,), daemon=True).start()
print("up", flush=True)
time.sleep(600)
"""
TRACED = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.prctl(0x59616d61, ctypes.c_long(-1), 0, 0, 0)
parent, (reader, writer) = os.getpid(), os.pipe()
if os.fork() == 0:
    assert libc.ptrace(0x4206, parent, None, None) == 0  # PTRACE_SEIZE
    os.write(writer, b"x")
    time.sleep(600)
os.read(reader, 1)
print("up", flush=True)
time.sleep(600)
"""
NO_LEADER = """
import ctypes, threading, time
def stay():
    print("up", flush=True)
    time.sleep(600)
threading.Thread(target=stay).start()
time.sleep(0.2)
ctypes.CDLL(None).syscall(60, 0)  # exit(2) of the main thread alone
"""
NOT_DUMPABLE = """
import ctypes, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
print("up", flush=True)
time.sleep(600)
"""
CHURN = """
import threading, time
def short():
    time.sleep(0.0005)
def churn():
    while True:
        thread = threading.Thread(target=short, name="\\x1b[2J(x) S 1 1 1\\n\\x00" + "y" * 90)
        thread.start()
        thread.join()
threading.Thread(target=churn, daemon=True).start()
print("up", flush=True)
time.sleep(600)
"""
RENAMED = """
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
names = [b") R 1 1 1 1 1 1 1", b"\\x1b]0;owned\\x07", b"\\xff\\xfe\\x9b2J", b"", b"::error::x", b"a\\nState:\\tZ"]
def rename():
    number = 0
    while True:
        number += 1
        libc.prctl(15, names[number % len(names)], 0, 0, 0)
        with open("/proc/self/comm", "wb") as stream:
            stream.write(names[(number + 1) % len(names)] or b"\\n")
        time.sleep(0.001)
os.makedirs("\\x1b[2J\\n##vso[x]/gone", exist_ok=True)
os.chdir("\\x1b[2J\\n##vso[x]/gone")
os.rmdir(os.getcwd())
threading.Thread(target=rename, daemon=True).start()
print("up", flush=True)
time.sleep(600)
"""
FORGED_ARGUMENTS = """
import ctypes, time
start, end = [int(field) for field in open("/proc/self/stat").read().rpartition(")")[2].split()[45:47]]
text = b"\\x1b]0;x\\x07\\xff\\n::error::##vso[x]\\0--pid\\x001\\0"
ctypes.memmove(start, (text * 9)[: end - start], end - start)
print("up", flush=True)
time.sleep(600)
"""
STATES = {
    "a full table of descriptors, with names of all kinds": FULL_TABLE,
    "memory of a file that was cut off, where an object's attributes lie": CUT_OFF,
    "traced by its own child": TRACED,
    "its first thread has ended": NO_LEADER,
    "not dumpable": NOT_DUMPABLE,
    "threads that come and go, with hostile names": CHURN,
    "a name that changes, in a directory that is gone": RENAMED,
    "arguments that were written over": FORGED_ARGUMENTS,
}


@pytest.mark.parametrize("program", list(STATES.values()), ids=list(STATES))
def test_a_target_in_an_odd_state(place: Place, program: str) -> None:
    """It is captured in bounded time, what could not be read is a gap, and it lives on, not stopped."""
    with running(place, program) as pid:
        lives = program is not NO_LEADER  # the leader is a zombie, which is the attack
        report = captured(pid, place.base / "bundle", lives=lives)
        assert [p for p in report["processes"] if p["pid"] == pid]
        assert Path(f"/proc/{pid}/task").exists() and len(os.listdir(f"/proc/{pid}/task")) >= 1


EXECS = """
import os, sys, time
print("up", flush=True)
time.sleep(float(sys.argv[2]))
os.execv(sys.executable, [sys.executable, sys.argv[0], sys.argv[1], sys.argv[1]])
"""
ENDS = """
import os, time
print("up", flush=True)
time.sleep({seconds})
os._exit(3)
"""
FORKS = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("up", flush=True)
while True:
    if os.fork() == 0:
        time.sleep(0.02)
        os._exit(0)
    time.sleep(0.002)
"""


def test_a_target_that_executes_itself_again_and_again(place: Place) -> None:
    """Its memory, threads and program change under the reader: a bundle or one sentence, and it goes on."""
    for number, pause in enumerate(("0", "0.05", "0.3")):
        with running(place, EXECS, pause, "0.1") as pid:
            captured(pid, place.base / f"bundle-{number}", statuses=(0, 125))


@pytest.mark.parametrize("seconds", [0.05, 0.15, 0.3, 0.45])
def test_a_target_that_ends_meanwhile(place: Place, seconds: float) -> None:
    """At different moments of the capture: one sentence, or a bundle with what there was."""
    with running(place, ENDS.format(seconds=seconds)) as pid:
        captured(pid, place.base / "bundle", statuses=(0, 125), lives=False)


def test_a_target_whose_children_come_and_go(place: Place) -> None:
    """They end between the look at the tree and the stop, and their numbers are given away: those that stay are captured."""
    with running(place, FORKS) as pid:
        report = captured(pid, place.base / "bundle")
        assert [p for p in report["processes"] if p["pid"] == pid]
