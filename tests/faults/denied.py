"""Runs a command whose ptrace and process_vm_readv the kernel refuses, as in a container without SYS_PTRACE.

``python -m tests.faults.denied COMMAND…``. A seccomp filter (seccomp(2), <linux/filter.h>, <linux/seccomp.h>) for x86-64: the
program's descendants have it too, and no privilege lifts it.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import List

_PTRACE, _PROCESS_VM_READV = 101, 310
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _EPERM = 0x7FFF0000, 0x00050000 | 1
_PR_SET_SECCOMP, _FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def refuse() -> None:
    """For this process from now on, and all that it starts. Raises OSError."""
    steps = [
        (_LOAD, 0, 0, 0),  # the number of the system call
        (_IF_EQUAL, 2, 0, _PTRACE),
        (_IF_EQUAL, 1, 0, _PROCESS_VM_READV),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _EPERM),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    refused = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    refused = refused or libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0)
    if refused:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def main(words: List[str]) -> None:
    refuse()
    os.execvp(words[0], words)


if __name__ == "__main__":
    main(sys.argv[1:])
