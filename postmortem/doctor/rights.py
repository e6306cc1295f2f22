"""What the kernel lets us do to other processes, tried on a child of our own (ptrace(2), process_vm_readv(2))."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import time
from typing import Iterator, Optional

from ..capture.freeze import pages, ptrace, refusal, vmread
from ..capture.procfs import parsers
from ..errors import PermissionRefused
from . import confinement
from .check import Check

_CAP_SYS_PTRACE = 19  # linux/capability.h
_ADMIN_ONLY = 2  # YAMA_SCOPE_CAPABILITY; below it, children can be traced
_STOPS_WITHIN_S = 5.0
_NAP_S = 0.001
_WITHOUT = "processes are copied while they run, so the stacks of threads that are busy then are incomplete"


@contextlib.contextmanager
def own_child() -> Iterator[int]:
    """Yield the pid of an idle copy of this process, which ends with the context or with us."""
    read, write = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(read)
        os.close(write)
        raise
    if child == 0:
        os.close(write)
        os.read(read, 1)  # blocks until the parent closes its end, however the parent ends
        os._exit(0)
    os.close(read)
    try:
        yield child
    finally:
        os.close(write)
        os.waitpid(child, 0)


def trace() -> Check:
    """Check whether commands run under capture can be traced."""
    name = "ptrace of commands run under capture"
    refused = trace_own_child()
    if refused is None:
        return Check(name, True, "allowed: a child process was stopped, read and released", needed=True)
    return Check(name, False, f"{refused}; {_WITHOUT}", refused.next, True)


def trace_own_child() -> Optional[PermissionRefused]:
    """Stop a child of ours as a capture would, and release it; return why that failed, else None."""
    with own_child() as child:
        try:
            ptrace.seize(child)
        except OSError as exc:
            return _explained(child, exc)
        try:
            _stop_and_read(child)
        except OSError as exc:
            return _explained(child, exc)
    return None


def _stop_and_read(child: int) -> None:
    ptrace.interrupt(child)
    until = time.monotonic() + _STOPS_WITHIN_S
    while ptrace.poll_stop(child) is None:
        if time.monotonic() > until:
            raise TimeoutError(errno.ETIMEDOUT, "it does not stop")
        time.sleep(_NAP_S)
    try:
        ptrace.register_set(child, ptrace.NT_PRSTATUS)
    finally:
        ptrace.detach(child, 0)


def _explained(child: int, error: OSError) -> PermissionRefused:
    """Return why tracing our own child is refused: no user lacks the right to, and no Yama scope below 2 forbids it."""
    scope = refusal.yama_scope()
    if scope is not None and scope >= _ADMIN_ONLY:
        return refusal.explain(child)
    reason = f"ptrace of a child process is refused ({error.strerror or error})"
    if confinement.seccomp_mode() == confinement.FILTERED:
        return PermissionRefused(f"{reason}: a seccomp filter forbids it", confinement.without_filter())
    return PermissionRefused(reason, confinement.with_ptrace())


def memory() -> Check:
    """Check whether a child's memory and its page map can be read."""
    name = "memory of other processes"
    block = ctypes.create_string_buffer(os.urandom(64), 64)
    address = ctypes.addressof(block)
    with own_child() as child:
        ways = [
            way
            for way, works in (
                ("process_vm_readv", _reads_at_once(child, address, block.raw)),
                ("/proc/PID/mem", _reads_file(child, address, block.raw)),
            )
            if works
        ]
        scans = _scans(child)
    if not ways:
        filtered = confinement.seccomp_mode() == confinement.FILTERED
        remedy = confinement.without_filter() if filtered else confinement.with_ptrace()
        return Check(name, False, "not even a child process's can be read: no core, no Python stacks", remedy, True)
    found = f"can be read ({', '.join(ways)})"
    if len(ways) == 1 and ways[0] != "process_vm_readv":
        found += "; process_vm_readv is refused, so copying takes about twice as long"
    found += {
        True: "; PAGEMAP_SCAN finds the pages that exist",
        False: "; without PAGEMAP_SCAN (Linux 6.7) large reservations take longer to search",
        None: "; which pages exist cannot be read, so more is copied",
    }[scans]
    return Check(name, True, found, needed=True)


def _reads_at_once(child: int, address: int, wanted: bytes) -> bool:
    into = bytearray(len(wanted))
    return vmread.read(child, [(address, address + len(wanted))], memoryview(into)) and bytes(into) == wanted


def _reads_file(child: int, address: int, wanted: bytes) -> bool:
    try:
        with open(f"/proc/{child}/mem", "rb", buffering=0) as stream:
            return os.pread(stream.fileno(), len(wanted), address) == wanted
    except OSError:
        return False


def _scans(child: int) -> Optional[bool]:
    """Return whether the PAGEMAP_SCAN ioctl works; None when the file cannot be read at all."""
    try:
        with open(f"/proc/{child}/pagemap", "rb", buffering=0) as stream:
            found = pages.PageMap(stream.fileno())
            touched = found.look(parsers.parse_maps(parsers.read(f"/proc/{child}/maps"))).touched
    except OSError:
        return None
    return found.has_scan if touched else None


def others() -> Check:
    """Check whether processes that are no children of ours can be traced (``capture --pid``)."""
    name = "ptrace of other processes (capture --pid)"
    refused = trace_own_child()
    if refused is not None:
        return Check(name, False, "refused altogether, see above", refused.next)
    if has_capability(_CAP_SYS_PTRACE):
        inner = confinement.outer_root() is not None
        where = "all processes of this user namespace" if inner else "all processes"
        return Check(name, True, f"allowed for {where} (CAP_SYS_PTRACE)")
    scope = refusal.yama_scope()
    if not scope:
        return Check(name, True, "allowed for processes of the same user with no more rights than postmortem")
    return Check(
        name,
        None,
        f"refused by Yama (kernel.yama.ptrace_scope is {scope}), except for commands run under capture",
        f"{confinement.with_ptrace()}, or: sudo sysctl kernel.yama.ptrace_scope=0",
    )


def has_capability(number: int) -> bool:
    """Return whether this process has an effective capability."""
    try:
        effective = parsers.status("/proc/self").get("CapEff", "0")
    except OSError:
        return False
    return bool(int(effective, 16) >> number & 1)
