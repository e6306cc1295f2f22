"""Faults in words, by address and signal, and the remedy of each kind."""

from __future__ import annotations

import signal
from typing import Callable, Optional, Tuple

from ...facts import native
from .crashing import Crashed, without_gil

#: mmap_min_addr is 64 kB: nothing is mapped below it, and a field of an object at NULL has such an address.
_NULL = 0x10000
#: Bytes with which Python's debug allocator fills blocks (Objects/obmalloc.c, PYMEM_DEADBYTE and its like, since 3.8).
_FILLED = {0xDD: "freed memory", 0xCD: "memory that was never written to", 0xFD: "bytes around a block"}
_HALF = 1 << 32
_TOP = 1 << 64
_DONE = {"read": "it read from", "write": "it wrote to", "execute": "it jumped to"}
_WHY = {
    "SEGV_MAPERR": "where there is no memory",
    "SEGV_ACCERR": "which may not be used in this way",
    "BUS_ADRALN": "which is not aligned",
    "BUS_ADRERR": "behind which there is no memory any more: the file that is mapped there ends before, or its disk is full",
}
_OTHERS = {
    "FPE_INTDIV": "an integer was divided by zero, or the quotient is too large",
    "FPE_INTOVF": "an integer overflowed",
    "ILL_ILLOPC": "the processor does not have this instruction",
    "ILL_ILLOPN": "the processor does not have this instruction",
    "SYS_SECCOMP": "a filter (seccomp) refuses this system call",
}


def address_of(found: Crashed) -> str:
    """Return the failed access in words: ``it read from address 0x10, a null pointer with an offset``."""
    crash = found.crash
    done = _DONE.get(crash.access or "", "it used")
    if crash.address is None:
        if crash.signal == signal.SIGSEGV and crash.code_name == "SI_KERNEL":
            return "it used an address that no program can have, or data that are not aligned"
        trap = crash.signal in (signal.SIGILL, signal.SIGTRAP) and _is_trap(crash.instruction)
        if trap:
            return "an instruction by which compilers end what must not go on (a failed check, a point never to be reached)"
        if crash.syscall is not None:
            return f"a filter (seccomp) refuses system call {crash.syscall}"
        return _OTHERS.get(crash.code_name or "", "the instruction could not be carried out")
    return (
        f"{done} address {crash.address:#x}, {_kind(found) or _WHY.get(crash.code_name or '', 'which it may not use')}"
    )


def _is_trap(instruction: Optional[str]) -> bool:
    """Return whether an instruction is one that compilers emit where code must not continue."""
    return bool(instruction and instruction.split()[0] in ("ud2", "ud2a", "ud1", "int3", "ud0"))


def _kind(found: Crashed) -> Optional[str]:
    """Return the apparent kind of the pointer; None if unknown."""
    crash = found.crash
    address = crash.address
    if address is None or crash.signal == signal.SIGBUS:
        return None
    if address < _NULL:
        return "a null pointer" if not address else "a null pointer with an offset"
    if filling(address) is not None:
        return f"made of what Python's debug allocator writes into {filling(address)}"
    if crash.code_name == "SI_KERNEL":
        return "which no program can have: whatever was read as a pointer is none"
    if cut(found):
        return "which looks like a pointer cut to 32 bits"
    return None


def filling(address: int) -> Optional[str]:
    """Return the kind of memory that the debug allocator filled with the bytes of an address; None if it is no filling."""
    byte = address >> 56
    return _FILLED.get(byte) if address >> 16 == int.from_bytes(bytes([byte] * 6), "big") else None


def cut(found: Crashed) -> bool:
    """Return whether an address looks like a pointer that ctypes took for a C int: cut to 32 bits, then sign-extended."""
    address = found.crash.address
    if address is None or not any(native.is_bridge(f) for f in found.natives):
        return False
    return _NULL <= address < _HALF or _TOP - _HALF // 2 <= address < _TOP - _NULL


def advice(found: Crashed) -> Optional[str]:
    """Return the remedy of a fault; None for the pattern's own."""
    return next((text for asked, text in _ADVICE if asked(found)), None)


def _freed(found: Crashed) -> bool:
    return found.crash.address is not None and filling(found.crash.address) is not None


def _null(found: Crashed) -> bool:
    return found.crash.address is not None and found.crash.address < _NULL


#: In this order; the first that applies.
_ADVICE: Tuple[Tuple[Callable[[Crashed], bool], str], ...] = (
    (cut,
     "Declare restype and argtypes of the functions called through ctypes: a result without a restype is a C int of 32 bits, "
     "which cuts pointers in half (ctypes.c_void_p keeps them whole)."),
    (without_gil,
     "Call functions of Python's C API with the GIL held: PyGILState_Ensure around them in C, ctypes.PyDLL or ctypes.pythonapi "
     "in place of CDLL."),
    (lambda found: found.crash.access == "execute",
     "What was called is no code: a callback of ctypes or cffi whose Python object is gone (keep a reference to it for as long "
     "as the library may call it), a library that was unloaded, or a function pointer that was overwritten."),
    (_freed,
     "An object was used after it had been freed: look for a missing Py_INCREF, or a borrowed reference that was kept."),
    (lambda found: found.crash.code_name == "BUS_ADRERR",
     "Do not cut a file short that others have mapped (write a new one and rename it); check its size before it is used, and "
     "the free space of the disk or of /dev/shm."),
    (lambda found: found.crash.signal == signal.SIGFPE,
     "Check the divisor before the call: native code divides without asking, where Python raises ZeroDivisionError."),
    (lambda found: found.crash.signal == signal.SIGILL and not _is_trap(found.crash.instruction),
     "Install a build of the library for this processor: it uses instructions that this one does not have."),
    (_null,
     "A pointer was NULL: check the line's arguments (a handle that was closed, None where memory is wanted) and whether an "
     "earlier call failed without anybody asking."),
)  # fmt: skip
