"""``evidence.Abort``: why native code called abort(), as far as the stack of its thread tells."""

from __future__ import annotations

import re
from typing import List, Optional, Sequence, Tuple

from ...evidence import Abort
from ...evidence.vocabulary import CrashBasis
from ...libc.cxxexceptions import thrown
from ...libc.lastlines import last_line
from ...libc.rustpanics import panic
from ...memory import ElfCore, Fault
from ...native.stacks import CrashFrame

_ABORT = re.compile(r"(__GI_)?abort(@.*)?$")
#: libsupc++ and libc++abi: eh_terminate.cc, eh_call.cc, vterminate.cc, pure.cc.
_TERMINATE = re.compile(r"(std::(terminate|unexpected|__terminate)|__cxxabiv1::__(terminate|unexpected)"
                        r"|__cxa_(call_terminate|call_unexpected|rethrow|throw|pure_virtual)"
                        r"|__clang_call_terminate|(__gnu_cxx::)?__verbose_terminate_handler|_ZSt9terminatev)\b")  # fmt: skip
#: library/std/src/panicking.rs, library/panic_abort.
_PANICS = re.compile(r"(core|std|alloc)::panicking::|rust_panic|rust_begin_unwind|__rust_start_panic|panic_abort::")
#: Files in which the stack of whoever called the library begins.
_CALLER = re.compile(
    r"/(libpython\d[^/]*|python\d*(\.\d+)?[a-z]*|libffi[-.][^/]*|_ctypes\.[^/]*|_cffi_backend\.[^/]*)$"
)
_MOST_WORDS = 4096


def abort_of(core: ElfCore, frames: Sequence[CrashFrame]) -> Optional[Abort]:
    """Return why a thread called abort(); None if it did not."""
    at = next((i for i, f in enumerate(frames[:12]) if f.function and _ABORT.match(f.function)), None)
    sp = frames[at].sp if at is not None else None
    if at is None or sp is None:
        return None
    end, names = _own_part(core, frames, at)
    words = _words(core, sp, end)
    terminates = any(_TERMINATE.search(name) for name in names)
    exception = thrown(core, words)
    if exception is not None:
        return Abort("exception", exception.type, exception.message, basis="recorded" if terminates else "inferred")
    if terminates:
        return Abort("terminate", message=last_line(core, sp), basis="inferred")
    told = panic(core, words)
    if told is not None or any(map(_PANICS.search, names)):
        basis: CrashBasis = "recorded" if any(map(_PANICS.search, names)) else "inferred"
        return Abort("panic", message=told.message if told else None, place=told.place if told else None, basis=basis)
    return Abort("call", message=last_line(core, sp), basis="inferred")


def _own_part(core: ElfCore, frames: Sequence[CrashFrame], at: int) -> Tuple[Optional[int], List[str]]:
    """Return (end of the stack of the code that called abort, names of its functions)."""
    names: List[str] = []
    for frame in frames[at + 1 :]:
        mapped = core.mapped_file(frame.address)
        if mapped is not None and _CALLER.search(mapped.path):
            return frame.sp, names
        names += [frame.function] if frame.function else []
    return None, names


def _words(core: ElfCore, sp: int, end: Optional[int]) -> Sequence[int]:
    """Return the words of a stack from a stack pointer on, up to a limit or the end of its memory."""
    mapping = core.mapping(sp)
    if mapping is None:
        return ()
    size = min(end if end is not None and end > sp else mapping.end, mapping.end) - sp
    try:
        return core.words(sp, min(size // 8, _MOST_WORDS))
    except Fault:
        return ()
