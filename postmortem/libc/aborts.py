"""What glibc said before it aborted: of its heap, of an assertion, of a stack that was smashed.

``__abort_msg`` (GLIBC_PRIVATE, in libc's dynamic symbols, there for debuggers) points to ``struct abort_msg_s {unsigned
int size; char msg[];}``: include/stdlib.h since glibc 2.11; set by assert/assert.c and sysdeps/posix/libc_fatal.c, to
memory that mmap gave; ``size`` is of the whole mapping. NULL: nothing was said.
"""

from __future__ import annotations

import re
from typing import Optional

from ..memory import Fault, Image

_LIBC = re.compile(r"/libc(-2\.\d+)?\.so(\.6)?( \(deleted\))?$")
_MSG, _MOST = 4, 4096


class NoAbortMessage(Exception):
    """What glibc said cannot be told; the message says why."""


def abort_message(image: Image) -> Optional[str]:
    """The text without its last newline; None when it said nothing, or there is no glibc. Raises NoAbortMessage."""
    base = next((f for f in image.files if f.offset == 0 and _LIBC.search(f.path)), None)
    if base is None:
        return None
    elf = image.elf(base.path)
    if elf is None:
        raise NoAbortMessage(f"{base.path} of the core's machine is not usable here")
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
