"""The message that glibc recorded before it aborted: heap corruption, a failed assertion, a smashed stack.

``__abort_msg`` points to ``struct abort_msg_s {unsigned int size; char msg[];}`` in memory from mmap; ``size`` is that
of the whole mapping. NULL: no message. The symbol is GLIBC_PRIVATE, in libc's dynamic symbols for debuggers.

Sources: include/stdlib.h since glibc 2.11; assert/assert.c and sysdeps/posix/libc_fatal.c set it.
"""

from __future__ import annotations

import re
from typing import Optional

from ..memory import Fault, Image

_LIBC = re.compile(r"/libc(-2\.\d+)?\.so(\.6)?( \(deleted\))?$")
_MSG, _MOST = 4, 4096


class NoAbortMessage(Exception):
    """The abort message cannot be read; the exception's text gives the reason."""


def abort_message(image: Image) -> Optional[str]:
    """Return glibc's abort message, stripped; None if there is none, or no glibc.

    Raises: NoAbortMessage if libc's file or memory cannot be read.
    """
    base = next((f for f in image.files if f.offset == 0 and _LIBC.search(f.path)), None)
    if base is None:
        return None
    elf = image.elf(base.path)
    if elf is None:
        raise NoAbortMessage(f"{base.path} of the core's machine cannot be used here")
    symbol = elf.symbol("__abort_msg")
    if symbol is None:
        return None
    try:
        at = image.u64(base.start - elf.first_vaddr + symbol)
        if not at:
            return None
        size = image.u32(at)
        text = image.cstring(at + _MSG, min(max(size - _MSG, 0), _MOST))
    except Fault as exc:
        raise NoAbortMessage(str(exc)) from None
    return text.decode("utf-8", "backslashreplace").strip() or None
