"""Faults in words, by address and signal, and the remedy of each kind."""

from __future__ import annotations

import signal
from typing import Callable, Optional, Tuple

from ....findings import Template, Text
from ...facts import native
from .crashing import Crashed, without_gil

#: mmap_min_addr is 64 kB: nothing is mapped below it, and a field of an object at NULL has such an address.
_NULL = 0x10000
#: Bytes with which Python's debug allocator fills blocks (Objects/obmalloc.c, PYMEM_DEADBYTE and its like, since 3.8).
_FILLED = {
    0xDD: Template("freed memory"),
    0xCD: Template("memory that was never written to"),
    0xFD: Template("the bytes around a block"),
}
_HALF = 1 << 32
_TOP = 1 << 64

_USED = Template("it used address {address:#x}, {kind}")
_DONE = {
    "read": Template("it read from address {address:#x}, {kind}"),
    "write": Template("it wrote to address {address:#x}, {kind}"),
    "execute": Template("it jumped to address {address:#x}, {kind}"),
}
_NULL_POINTER = Template("a null pointer")
_NEAR_NULL = Template("a null pointer with an offset")
_MADE_OF = Template("made of the bytes that Python's debug allocator writes into {memory}")
_NO_POINTER = Template("which no program can have: what was used as a pointer is not one")
_CUT = Template("which looks like a pointer cut to 32 bits")
_MAY_NOT = Template("which it may not use")
_WHY = {
    "SEGV_MAPERR": Template("where no memory is mapped"),
    "SEGV_ACCERR": Template("which may not be used in this way"),
    "BUS_ADRALN": Template("which is not aligned"),
    "BUS_ADRERR": Template(
        "which has no memory behind it any more: the file mapped there ends before it, or its disk is full"
    ),
}
_NO_ADDRESS = Template("it used an address that no program can have, or data that is not aligned")
_TRAP = Template(
    "a trap, an instruction that compilers emit where code must not continue (a failed check, unreachable code)"
)
_REFUSED = Template("a filter (seccomp) refuses system call {number}")
_NOT_DONE = Template("the instruction could not be executed")
_OTHERS = {
    "FPE_INTDIV": Template("an integer was divided by zero, or the quotient is too large"),
    "FPE_INTOVF": Template("an integer overflowed"),
    "ILL_ILLOPC": Template("the processor does not have this instruction"),
    "ILL_ILLOPN": Template("the processor does not have this instruction"),
    "SYS_SECCOMP": Template("a filter (seccomp) refuses this system call"),
}

_DECLARE = Template(
    "Declare restype and argtypes of the functions called through ctypes: a result without a restype is a C int of 32 bits, "
    "which cuts pointers in half (ctypes.c_void_p keeps them whole)."
)
_HOLD_THE_GIL = Template(
    "Call functions of Python's C API with the GIL held: PyGILState_Ensure around them in C, ctypes.PyDLL or ctypes.pythonapi "
    "in place of CDLL."
)
_KEEP_THE_CALLBACK = Template(
    "What was called is not code: a callback of ctypes or cffi whose Python object is gone (keep a reference to it for as long "
    "as the library may call it), a library that was unloaded, or a function pointer that was overwritten."
)
_KEEP_A_REFERENCE = Template(
    "An object was used after it had been freed: look for a missing Py_INCREF, or a borrowed reference that was kept."
)
_WRITE_A_NEW_FILE = Template(
    "Do not truncate a file that others have mapped (write a new one and rename it); check its size before it is used, and "
    "the free space of the disk or of /dev/shm."
)
_CHECK_THE_DIVISOR = Template(
    "Check the divisor before the call: native code divides without checking, where Python raises ZeroDivisionError."
)
_INSTALL_ANOTHER = Template(
    "Install a build of the library for this processor: it uses instructions that this one does not have."
)
_CHECK_FOR_NULL = Template(
    "A pointer was NULL: check the line's arguments (a handle that was closed, None where memory is expected) and whether an "
    "earlier call failed unnoticed."
)


def address_of(found: Crashed) -> Text:
    """Return the failed access: ``it read from address 0x10, a null pointer with an offset``."""
    crash = found.crash
    if crash.address is None:
        if crash.signal == signal.SIGSEGV and crash.code_name == "SI_KERNEL":
            return _NO_ADDRESS()
        trap = crash.signal in (signal.SIGILL, signal.SIGTRAP) and _is_trap(crash.instruction)
        if trap:
            return _TRAP()
        if crash.syscall is not None:
            return _REFUSED(number=crash.syscall)
        return _OTHERS.get(crash.code_name or "", _NOT_DONE)()
    done = _DONE.get(crash.access or "", _USED)
    return done(address=crash.address, kind=_kind(found) or _WHY.get(crash.code_name or "", _MAY_NOT)())


def _is_trap(instruction: Optional[str]) -> bool:
    """Return whether an instruction is one that compilers emit where code must not continue."""
    words = (instruction or "").split()
    return bool(words) and words[0] in ("ud2", "ud2a", "ud1", "int3", "ud0")


def _kind(found: Crashed) -> Optional[Text]:
    """Return the apparent kind of the pointer; None if unknown."""
    crash = found.crash
    address = crash.address
    if address is None or crash.signal == signal.SIGBUS:
        return None
    if address < _NULL:
        return _NEAR_NULL() if address else _NULL_POINTER()
    memory = filling(address)
    if memory is not None:
        return _MADE_OF(memory=memory)
    if crash.code_name == "SI_KERNEL":
        return _NO_POINTER()
    return _CUT() if cut(found) else None


def filling(address: int) -> Optional[Text]:
    """Return the kind of memory that the debug allocator filled with the bytes of an address; None if it is no filling."""
    byte = address >> 56
    filled = _FILLED.get(byte) if address >> 16 == int.from_bytes(bytes([byte] * 6), "big") else None
    return filled() if filled is not None else None


def cut(found: Crashed) -> bool:
    """Return whether an address looks like a pointer that ctypes took for a C int: cut to 32 bits, then sign-extended."""
    address = found.crash.address
    if address is None or not any(native.is_bridge(f) for f in found.natives):
        return False
    return _NULL <= address < _HALF or _TOP - _HALF // 2 <= address < _TOP - _NULL


def advice(found: Crashed) -> Optional[Text]:
    """Return the remedy of a fault; None for the pattern's own."""
    return next((remedy() for asked, remedy in _ADVICE if asked(found)), None)


def _freed(found: Crashed) -> bool:
    return found.crash.address is not None and filling(found.crash.address) is not None


def _null(found: Crashed) -> bool:
    return found.crash.address is not None and found.crash.address < _NULL


#: In this order; the first that applies.
_ADVICE: Tuple[Tuple[Callable[[Crashed], bool], Template], ...] = (
    (cut, _DECLARE),
    (without_gil, _HOLD_THE_GIL),
    (lambda found: found.crash.access == "execute", _KEEP_THE_CALLBACK),
    (_freed, _KEEP_A_REFERENCE),
    (lambda found: found.crash.code_name == "BUS_ADRERR", _WRITE_A_NEW_FILE),
    (lambda found: found.crash.signal == signal.SIGFPE, _CHECK_THE_DIVISOR),
    (lambda found: found.crash.signal == signal.SIGILL and not _is_trap(found.crash.instruction), _INSTALL_ANOTHER),
    (_null, _CHECK_FOR_NULL),
)
