"""What this machine allows: each tool and permission tried, not looked up, and how to mend what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence

from . import places
from .capture import ptrace, refusal
from .errors import PermissionRefused
from .memory.elf import Elf, NotElf

_CAP_SYS_PTRACE = 19  # linux/capability.h


class Check(NamedTuple):
    """One line of the examination; ``ok`` is None for what is neither good nor bad, only worth knowing."""

    name: str
    ok: Optional[bool]
    found: str
    remedy: str = ""
    needed: bool = False  # a capture or analysis lacks something without it

    @property
    def mark(self) -> str:
        return {True: "ok", False: "no", None: "note"}[self.ok]


def checks() -> List[Check]:
    """All of them, in the order in which a capture would meet them."""
    return [_pyspy(), _ptrace_child(), _ptrace_others(), _gdb(), _cache(), _core_pattern(), _coredumpctl(), _symbols()]


def _output(command: Sequence[str]) -> str:
    """What a tool says within ten seconds; "" when it cannot be run or fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=True, text=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _gdb() -> Check:
    from .native import find_gdb  # noqa: PLC0415 - the other checks work while native stacks do not

    remedy = "apt-get install gdb, or pip install gdb-for-pwndbg (needs no root)"
    gdb = find_gdb()
    if gdb is None:
        return Check("gdb", False, "not found; native stacks and the frames between them will be missing", remedy, True)
    script = "python import sys; print('%s with Python %d.%d' % ((gdb.VERSION,) + sys.version_info[:2]))"
    said = _output([str(gdb), "-nx", "-batch", "-ex", script])
    if not said:
        return Check("gdb", False, f"{gdb} does not run, or has no Python inside", remedy, True)
    return Check("gdb", True, f"{gdb}, version {said}", needed=True)


def _pyspy() -> Check:
    beside = Path(sys.executable).parent / "py-spy"
    path = str(beside) if beside.exists() else shutil.which("py-spy")
    said = _output([path, "--version"]) if path else ""
    if said:
        return Check("py-spy", True, f"{path}, {said}", needed=True)
    return Check("py-spy", False, "not found; stacks over time will be missing", "pip install py-spy", True)


def _ptrace_child() -> Check:
    name = "ptrace of commands run under capture"
    refused = trace_own_child()
    if refused is None:
        return Check(name, True, "allowed", needed=True)
    return Check(name, False, f"{refused}; no core can be taken", refused.next, True)


def trace_own_child() -> Optional[PermissionRefused]:
    """Seizes a child of ours as a capture would, and lets it go: None when that worked, else why not."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the parent closes its end, however it ends
        os._exit(0)
    os.close(read)
    try:
        ptrace.seize(child)
    except OSError:
        return refusal.explain(child)
    finally:
        os.close(write)
        os.waitpid(child, 0)
    return None


def _ptrace_others() -> Check:
    name = "ptrace of other processes (capture --pid)"
    if _has_capability(_CAP_SYS_PTRACE):
        return Check(name, True, "allowed for all processes (CAP_SYS_PTRACE)")
    scope = refusal.yama_scope()
    if not scope:
        return Check(name, True, "allowed for processes of the same user")
    return Check(
        name,
        None,
        f"refused by Yama (kernel.yama.ptrace_scope is {scope}), except for commands run under capture",
        "run as root, or: sudo sysctl kernel.yama.ptrace_scope=0",
    )


def _has_capability(number: int) -> bool:
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return False
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> number & 1)


def _cache() -> Check:
    try:
        folder = places.cache()
        writable = os.access(folder, os.W_OK)
    except OSError as exc:
        return Check("cache", False, f"cannot be made: {exc}", "set XDG_CACHE_HOME to a folder that can be written")
    if writable:
        return Check("cache", True, str(folder))
    return Check("cache", False, f"{folder} cannot be written", "set XDG_CACHE_HOME to a folder that can be written")


def _core_pattern() -> Check:
    pattern = _first_line("/proc/sys/kernel/core_pattern")
    if not pattern:
        return Check(
            "core_pattern", None, "unknown, or crashes leave no core", "sudo sysctl kernel.core_pattern=core.%p"
        )
    if not pattern.startswith("|"):
        return Check("core_pattern", True, f"crashes leave a file {pattern} (if `ulimit -c` is not 0)")
    if "systemd-coredump" in pattern:
        return Check(
            "core_pattern", True, "crashes go to systemd: `coredumpctl dump -o core`, then `postmortem analyze core`"
        )
    return Check(
        "core_pattern", None, f"crashes go to {pattern[1:]}", "for core files: sudo sysctl kernel.core_pattern=core.%p"
    )


def _coredumpctl() -> Check:
    path = shutil.which("coredumpctl")
    if path:
        return Check("coredumpctl", True, path)
    return Check(
        "coredumpctl", None, "not found; only needed where systemd keeps the cores", "apt-get install systemd-coredump"
    )


def _symbols() -> Check:
    """Whether the C library's debug symbols lie where gdb looks; without them it still unwinds, with fewer names."""
    name = "debug symbols of the C library"
    libc = _mapped_libc()
    try:
        build_id = _build_id(libc) if libc else None
    except (OSError, NotElf):
        build_id = None
    if build_id is None:
        return Check(name, None, "unknown: it has no build-id that could be read")
    debug = Path(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
    if debug.exists():
        return Check(name, True, str(debug))
    return Check(name, None, "not installed; some native frames may lack names", "apt-get install libc6-dbg")


def _build_id(path: str) -> Optional[str]:
    elf = Elf(path)
    try:
        return elf.build_id
    finally:
        elf.close()


def _mapped_libc() -> Optional[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = {line.split(None, 5)[-1].strip() for line in maps if "libc" in line}
    return next((path for path in sorted(paths) if Path(path).name.startswith(("libc.so", "libc-"))), None)


def _first_line(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return None
