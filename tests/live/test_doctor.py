"""`postmortem doctor` where something is really forbidden: it says so, names the flag that helps, and ends as it should."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence

import pytest

from ..support.capturing import HANG_S, ROOT

pytestmark = pytest.mark.live

#: What needs nothing but the standard library, so that any interpreter can run it.
EXAMINE = """
from postmortem.doctor import confinement, rights, room
for look in (
    rights.trace, rights.memory, rights.others, confinement.user_namespace, confinement.seccomp, confinement.proc,
    confinement.control_groups, room.memory, room.disk, room.core_pattern, room.core_limit,
):
    check = look()
    print(check.mark, check.name, check.found, check.remedy, sep="\\t")
"""
PYTHON = "/usr/bin/python3"  # one that every user may run


class Line(NamedTuple):
    mark: str
    found: str
    remedy: str


@pytest.fixture(scope="module")
def library() -> Iterator[Path]:
    """The package where other users can read it."""
    with tempfile.TemporaryDirectory(prefix="postmortem-test-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        shutil.copytree(ROOT / "postmortem", folder / "postmortem", ignore=shutil.ignore_patterns("__pycache__"))
        yield folder


def examined(library: Path, before: Sequence[str] = (), python: str = PYTHON) -> Dict[str, Line]:
    environment = {**os.environ, "PYTHONPATH": str(library), "HOME": str(library)}
    done = subprocess.run(
        [*before, python, "-B", "-c", EXAMINE],
        cwd=library,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {name: Line(mark, found, remedy) for mark, name, found, remedy in rows}


def need(*words: str) -> None:
    """Skips where a tool is missing or refuses."""
    try:
        subprocess.run([*words, "true"], check=True, capture_output=True, timeout=HANG_S)
    except (OSError, subprocess.SubprocessError):
        pytest.skip(f"{words[0]} does not work here")


TRACE = "ptrace of commands run under capture"
OTHERS = "ptrace of other processes (capture --pid)"
MEMORY = "memory of other processes"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def test_in_a_user_namespace(library: Path) -> None:
    """Commands can be captured; that others cannot is said."""
    before = ["unshare", "-U", "-r", "-p", "--fork", "--mount-proc"]
    need(*before)
    lines = examined(library, before)
    assert lines[TRACE].mark == lines[MEMORY].mark == "ok"
    assert lines["user namespace"].mark == "note"
    assert f"user {os.geteuid()} outside" in lines["user namespace"].found
    assert "user namespace" in lines[OTHERS].found


@pytest.mark.parametrize("before", [NOBODY, ["setpriv", "--bounding-set=-all", "--no-new-privs"]])
def test_without_capabilities(library: Path, before: List[str]) -> None:
    """Own children are traced all the same; of other processes only those of the same user."""
    need(*before)
    lines = examined(library, before)
    assert lines[TRACE].mark == lines[MEMORY].mark == "ok"
    assert "CAP_SYS_PTRACE" not in lines[OTHERS].found
    assert re.search("same user|Yama", lines[OTHERS].found)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def forbid(*numbers: int) -> None:
    """A seccomp filter that answers these system calls with EPERM (struct sock_fprog of <linux/filter.h>)."""
    load, equal, answer, allow, refuse = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000 | 1
    steps = [(load, 0, 0, 0)]
    steps += [(equal, len(numbers) - position, 0, number) for position, number in enumerate(numbers)]
    steps += [(answer, 0, 0, allow), (answer, 0, 0, refuse)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    assert libc.prctl(no_new_privileges, 1, 0, 0, 0) == 0
    assert libc.prctl(set_seccomp, filter_mode, ctypes.byref(program), 0, 0) == 0


def confined(*numbers: int) -> List[str]:
    """Words that run what follows them under such a filter."""
    code = f"import os, sys; from {__name__} import forbid; forbid(*{numbers}); os.execvp(sys.argv[1], sys.argv[1:])"
    return ["env", f"PYTHONPATH={ROOT}", sys.executable, "-c", code]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter has this machine's numbers")
def test_under_a_seccomp_filter(library: Path) -> None:
    """ptrace is tried, not looked up: the filter is named, with the flag that lifts it; what still works is told too."""
    ptrace, process_vm_readv = 101, 310
    before = [*confined(ptrace, process_vm_readv), "env", f"PYTHONPATH={library}"]
    need(*before)
    lines = examined(library, before)
    assert lines[TRACE].mark == lines[OTHERS].mark == "no"
    assert "seccomp filter" in lines[TRACE].found and lines[TRACE].remedy
    assert lines["seccomp"].mark == "note"
    assert lines[MEMORY].mark == "ok" and "process_vm_readv is refused" in lines[MEMORY].found


def test_where_proc_hides_processes(library: Path) -> None:
    """A /proc with hidepid, seen by somebody without rights."""
    mount = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    before = ["unshare", "-m", "sh", "-c", mount, "sh", *NOBODY]
    need(*before)
    line = examined(library, before)["/proc"]
    assert line.mark == "note" and "hidepid" in line.found and "remount" in line.remedy


def test_the_limit_of_cores_is_seen(library: Path) -> None:
    """A hard limit of 0 rules the kernel's cores out."""
    line = examined(library, ["sh", "-c", 'ulimit -c 0; exec "$@"', "sh"])["core file size limit"]
    assert line.mark == "note" and "hard limit is 0" in line.found and "--ulimit core=-1" in line.remedy
