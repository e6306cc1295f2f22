"""Targets of another user in name spaces, with ids and with files of their own choosing, which change meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List

import pytest

from ..support.required import lacking
from . import further
from .bundles import SECRET
from .further import AS_OTHER, OTHER, PYTHON, Place, captured, running

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and another user beside it")]

UP = "print('up', flush=True)\n"
SLEEP = UP + "time.sleep(600)\n"
#: What is on this machine for all to read, and is not in the target's root: no report may take it for the target's.
HERE = "this-machine-only"
#: Mounts, as far as a target may; those that fail end it, lest a test passes that did nothing.
MOUNTS = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind=None, flags=0x1000, data=None):
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), data and data.encode()):
        raise OSError(ctypes.get_errno(), "mount", target)
def umount(target):
    if libc.umount2(target.encode(), 2):
        raise OSError(ctypes.get_errno(), "umount2", target)
def stand_in(name):
    known = {"time": time}
    exec(compile("\\n\\n\\ndef stand():\\n    time.sleep(600)\\n", name, "exec"), known)
    threading.Thread(target=known["stand"], daemon=True).start()
def mapped(word):
    return next(l.split()[-1] for l in open("/proc/self/maps") if word in l)
"""


@pytest.fixture
def place() -> Iterator[Place]:
    with further.place() as made:
        yield made


@pytest.fixture
def unshared() -> List[str]:
    """The start of a command whose program is root, in a user and a mount namespace of its own."""
    command = ["unshare", "--user", "--map-root-user", "--mount"]
    probe = (
        subprocess.run([*command, "true"], capture_output=True, check=False, **AS_OTHER)
        if shutil.which("unshare")
        else None
    )
    if probe is None or probe.returncode:
        message = "no user namespaces here: sysctl kernel.unprivileged_userns_clone=1, and unshare of util-linux"
        lacking(message)
    return command


# ---------------------------------------------------------------------- mounts

SPACES = {
    "root's file over a source": """
open(lib := theirs + "/lib.py", "w").close()
mount(hidden, lib)
stand_in(lib)
""",
    "root's file over its libraries": """
for word in ("libz.so", "libexpat.so", "libc.so", "libm.so", "ld-linux"):
    mount(hidden, mapped(word))
""",
    "root's file over its program": """
mount(hidden, os.path.realpath(sys.executable))
mount(hidden, theirs + "/app.py")
""",
    "another program over its program and its libraries": """
for name in (os.path.realpath(sys.executable), mapped("libz.so"), mapped("libc.so")):
    mount("/bin/sh", name)
""",
    "a FIFO and a device over its libraries": """
os.mkfifo(theirs + "/fifo")
mount(theirs + "/fifo", mapped("libz.so"))
mount("/dev/zero", mapped("libexpat.so"))
mount("/dev/full", os.path.realpath(sys.executable))
mount(theirs + "/fifo", theirs + "/app.py")
""",
    "an empty file system over its libraries": """
mount("tmpfs", os.path.dirname(mapped("libz.so")), "tmpfs", 0)
os.symlink(hidden, os.path.join(os.path.dirname(mapped("libz.so")), "libz.so.1"))
os.mkdir(mapped("libexpat.so"))
""",
    "an overlay of root's directory": """
for name in ("upper", "work", "merged"):
    os.mkdir(theirs + "/" + name)
layers = f"lowerdir={os.path.dirname(hidden)},upperdir={theirs}/upper,workdir={theirs}/work,userxattr"
mount("overlay", theirs + "/merged", "overlay", 0, layers)
os.symlink("secret.py", theirs + "/merged/link.py")
stand_in(theirs + "/merged/secret.py")
stand_in(theirs + "/merged/link.py")
""",
    "its process file system is another": """
mount("tmpfs", "/proc", "tmpfs", 0)
os.symlink(os.path.dirname(hidden), "/proc/self")
os.mkdir("/proc/" + str(os.getpid()))
os.symlink(hidden, "/proc/%d/maps" % os.getpid())
os.symlink(hidden, "/proc/%d/exe" % os.getpid())
stand_in("/proc/self/secret.py")
""",
    "sources and libraries that change in a loop": """
open(lib := theirs + "/lib.py", "w").close()
stand_in(lib)
def swap():
    names = (lib, mapped("libz.so"), mapped("libc.so"), os.path.realpath(sys.executable), theirs + "/app.py")
    while True:
        for name in names:
            mount(hidden, name)
        time.sleep(0.003)
        for name in names:
            umount(name)
        time.sleep(0.003)
threading.Thread(target=swap, daemon=True).start()
""",
}


@pytest.mark.parametrize("program", list(SPACES.values()), ids=list(SPACES))
def test_mounts_over_what_a_target_runs(place: Place, unshared: List[str], program: str) -> None:
    """Root of a user namespace mounts files that it may not read, other programs, FIFOs, devices, empty file systems and
    a false /proc over its sources, libraries and program. Nothing of root's is shown or kept, nothing hangs, and the
    process has its stack."""
    names = f"theirs, hidden = {str(place.theirs)!r}, {str(place.hidden)!r}\n"
    with running(place, MOUNTS + names + program + SLEEP, python=(*unshared, PYTHON)) as pid:
        report = captured(pid, place.base / "bundle")
    (process,) = report["processes"]
    assert process["threads"][0]["python"][-1]["function"] == "<module>"


CHROOT = """
base, outside = sys.argv[1:]
root = base + "/root"
os.makedirs(root + "/tmp")
for name in ("usr", "proc", "dev"):
    os.mkdir(f"{root}/{name}")
    mount("/" + name, f"{root}/{name}", None, 0x1000 | 0x4000)
for name in ("lib", "lib64", "bin"):
    os.symlink("usr/" + name, f"{root}/{name}")
os.symlink("../../../../../../.." + outside, root + "/relative.py")
os.symlink(outside, root + "/absolute.py")
os.symlink("/proc/1/root" + outside, root + "/magic.py")
os.symlink("/proc/self/cwd/../../../../../../.." + outside, root + "/cwd.py")
os.symlink("/", root + "/self")
os.symlink("loop.py", root + "/loop.py")
held = os.open("/", os.O_PATH)
os.chroot(root)
os.fchdir(held)  # its directory stays outside of its root
for name in ("/relative.py", "/absolute.py", "/magic.py", "/cwd.py", "/loop.py", outside, "/tmp/../../../../.." + outside,
             "/self/self/self/.." + outside, "..//.." + outside, "." + outside, "/proc/self/fd/%d%s" % (held, outside)):
    stand_in(name)
"""


def test_names_that_lead_out_of_another_root(place: Place, unshared: List[str]) -> None:
    """A target behind chroot names sources through links, ``..``, magic links and a directory outside of its root. None of
    this machine's lines is taken for the target's below its own root, and nothing is written outside of the bundle."""
    outside = place.base / "outside.py"
    outside.write_text(f"x = '{HERE}'\n" * 20)
    words = (str(place.theirs), str(outside))
    with running(place, MOUNTS + CHROOT + SLEEP, *words, python=(*unshared, PYTHON)) as pid:
        report = captured(pid, place.base / "bundle")
    (process,) = report["processes"]
    stood = [f for t in process["threads"] for f in t["python"] if f["function"] == "stand"]
    assert len(stood) == 11
    shown = {f["file"] for f in stood if HERE in str(f.get("source"))}
    assert shown == set()
    assert outside.read_text() == f"x = '{HERE}'\n" * 20
    assert {path.name for path in place.base.iterdir()} == {"theirs", "ours", "outside.py", "bundle"}


# ---------------------------------------------------------------------- ids


def program_with(place: Place, mode: int) -> Path:
    """A copy of the interpreter, root's, with bits that lend its users root's rights."""
    copy = place.base / "python"
    shutil.copy(os.path.realpath(PYTHON), copy)
    copy.chmod(mode)
    return copy


_BEFORE, _FROM = MOUNTS.split("def stand_in", maxsplit=1)
STAND = _BEFORE.split("libc =", maxsplit=1)[0] + "def stand_in" + _FROM
LENT = {
    "setuid": (0o4755, ""),
    "setgid": (0o2755, ""),
    "setuid, files' id dropped": (0o4755, "import ctypes\nctypes.CDLL(None).setfsuid(65534)\n"),
    "setuid, saved only": (0o4755, "os.setresuid(65534, 65534, 0)\n"),
    "setuid, dumpable again": (0o4755, "import ctypes\nctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"),
    "setuid, ids that change in a loop": (
        0o4755,
        "def turn():\n    while True:\n        os.setresuid(65534, 65534, 0)\n        os.setresuid(65534, 0, 0)\n"
        "threading.Thread(target=turn, daemon=True).start()\n",
    ),
}


@pytest.mark.parametrize("mode,act", list(LENT.values()), ids=list(LENT))
def test_programs_with_rights_that_are_lent(place: Place, mode: int, act: str) -> None:
    """Another user runs an interpreter that lends root's ids, whole, in part, or by turns, with a source's name that is
    root's file. Where ids differ no file is read, so that root's lines are not shown; the stacks are."""
    program = f"{STAND}assert 0 in (os.geteuid(), os.getegid())\n{act}stand_in({str(place.hidden)!r})\n" + SLEEP
    python = program_with(place, mode)
    with running(place, program, python=(str(python), "-I")) as pid:
        report = captured(pid, place.base / "bundle")
    (process,) = report["processes"]
    assert [t for t in process["threads"] if any(f["function"] == "stand" for f in t["python"])]


def test_a_target_that_executes_a_lent_program_and_back(place: Place) -> None:
    """A process that is its user's own and, by turns, a program with root's rights, under the same number: the rights that
    were looked at are never those with which another is read."""
    python = program_with(place, 0o4755)
    program = f"""{STAND}
stand_in({str(place.hidden)!r})
os.symlink({str(place.hidden)!r}, "link.py") if not os.path.lexists("link.py") else None
stand_in(os.path.abspath("link.py"))
{UP if False else "if len(sys.argv) < 2: print('up', flush=True)"}
time.sleep(0.07)
os.setresuid(65534, 65534, 65534)
other = {str(python)!r} if os.path.realpath(sys.executable) != {str(python)!r} else {PYTHON!r}
os.execv(other, [other, "-I", os.path.abspath("app.py"), "again"])
"""
    with running(place, program) as pid:
        for turn in range(3):
            captured(pid, place.base / f"bundle{turn}", statuses=(0, 125))


def test_a_target_whose_groups_and_ids_change_meanwhile(place: Place) -> None:
    """A daemon that gives up root's ids and groups while it is captured, one after the other: what its user may not read is
    not shown once a capture sees any id given up."""
    program = f"""{STAND}
os.setgroups([0])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 0)
stand_in({str(place.hidden)!r})
def turn():
    while True:
        for groups in ([0], [], [65534]):
            os.seteuid(0)
            os.setgroups(groups)
            os.seteuid(65534)
threading.Thread(target=turn, daemon=True).start()
{SLEEP}"""
    with running(place, program, user=0, group=0) as pid:
        captured(pid, place.base / "bundle")


# ---------------------------------------------------------------------- against the capture's own processes

HUNT = """
import ctypes, json, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
mark = sys.argv[1].encode()
if os.fork() == 0:
    seen, struck = set(), []
    def parents():
        found = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/stat") as stat:
                        found[int(name)] = int(stat.read().rpartition(")")[2].split()[1])
                except OSError:
                    pass
        return found
    def is_capture(pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                return {mark, b"capture"} <= set(line.read().split(b"\\0"))
        except OSError:
            return False
    captures = set()
    while True:
        table = parents()
        captures |= {pid for pid in table if is_capture(pid)}
        prey, grown = set(captures), True
        while grown:
            more = {pid for pid, parent in table.items() if parent in prey}
            grown = not more <= prey
            prey |= more
        for pid in prey:
            for act in ("kill", "ptrace", "mem", "environ", "fd", "adj"):
                try:
                    if act == "kill":
                        os.kill(pid, signal.SIGKILL)
                    elif act == "ptrace":
                        if libc.ptrace(0x4206, pid, None, None):
                            raise OSError
                    elif act == "mem":
                        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
                    elif act == "environ":
                        open(f"/proc/{pid}/environ", "rb").read()
                    elif act == "fd":
                        for fd in os.listdir(f"/proc/{pid}/fd"):
                            pass
                    else:
                        os.setpriority(os.PRIO_PROCESS, pid, 19)
                except OSError:
                    continue
                struck.append(act)
        if len(prey) > len(seen) or struck:
            seen |= prey
            with open("hunted.new", "w") as out:
                json.dump([len(seen), struck], out)
            os.rename("hunted.new", "hunted.json")
        time.sleep(0.001)
print(os.getpid(), "up", flush=True)
while True:
    time.sleep(600)
"""


@pytest.mark.parametrize("space", [False, True], ids=["user", "root of a user namespace"])
def test_a_user_who_hunts_the_processes_of_a_capture(place: Place, unshared: List[str], space: bool) -> None:
    """A process of the target's user kills, traces, opens and slows, in a loop, all processes of the capture that it can
    see, also those that read with its user's rights: none is struck, and the capture is whole."""
    bundle = place.base / "bundle"
    with running(place, HUNT, str(bundle), python=(*(unshared if space else ()), PYTHON)) as pid:
        report = captured(pid, bundle)
        seen, struck = json.loads((place.theirs / "hunted.json").read_text())
    assert seen > 1
    assert struck == []
    assert any(process["pid"] == pid and process["threads"][0]["python"] for process in report["processes"])


# ---------------------------------------------------------------------- what is now at the path of something mapped

NOW: Dict[str, str] = {
    "nothing": "os.unlink(name)",
    "FIFO": "os.unlink(name); os.mkfifo(name)",
    "directory": "os.unlink(name); os.mkdir(name)",
    "link to root's": "os.unlink(name); os.symlink(hidden, name)",
    "endless device": "os.unlink(name); os.symlink('/dev/zero', name)",
    "another program": "os.unlink(name); shutil.copy('/bin/sh', name)",
    "socket": "os.unlink(name); socket.socket(socket.AF_UNIX).bind(name)",
    "itself": "os.unlink(name); os.symlink(name, name)",
}


@pytest.mark.parametrize("act", list(NOW.values()), ids=list(NOW))
def test_something_else_at_the_path_of_a_program_and_a_library(place: Place, act: str) -> None:
    """The program and a library of a running process are deleted, and at their paths is now something that blocks, never
    ends, cannot be read or is another's: the capture neither hangs nor shows it."""
    python, library = place.theirs / "python", place.theirs / "libz.so.1"
    shutil.copy(os.path.realpath(PYTHON), python)
    (source,) = [
        word for word in subprocess.check_output(["ldd", str(python)], text=True).split() if "/libz.so" in word
    ]
    shutil.copy(os.path.realpath(source), library)
    for each in (python, library):
        os.chown(each, OTHER, OTHER)
    program = f"""import ctypes, os, shutil, socket, time
hidden = {str(place.hidden)!r}
kept = ctypes.CDLL({str(library)!r})
for name in ({str(python)!r}, {str(library)!r}):
    {act}
{SLEEP}"""
    with running(place, program, python=(str(python),)) as pid:
        report = captured(pid, place.base / "bundle")
    (process,) = report["processes"]
    assert process["threads"][0]["python"][-1]["function"] == "<module>"
    assert SECRET not in str(report)
