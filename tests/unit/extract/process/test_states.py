"""Thread states of several interpreters, of which some cannot be read."""

from __future__ import annotations

import struct
from typing import Any, List, Optional

from postmortem.cpython.frames.chains import Chain
from postmortem.cpython.frames.frame import Frame
from postmortem.cpython.state.interpreter import ThreadState
from postmortem.extract.process.states import match_states
from postmortem.memory import CoreThread


class Fake:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def state(interpreter: int, frames: int, cut: Optional[str] = None) -> ThreadState:
    made: List[Frame] = [Fake(address=n) for n in range(frames)]  # type: ignore[misc]
    return ThreadState(
        address=0x1000 * (interpreter + 1),
        ident=0x7000,
        native_id=7,
        attached=None,
        interpreter=interpreter,
        frames=made,
        cut=cut,
        chain=Chain(made, cut, frames),
    )


def test_a_caller_whose_stack_is_lost_is_a_gap() -> None:
    """The main interpreter's frames could not be read: what the other one's show is not all, and the state says so."""
    interpreters: Any = [Fake(threads=[state(0, 0, "not in the core")]), Fake(threads=[state(1, 2)])]
    core: Any = Fake(threads=[CoreThread(7, 0, {"fs_base": 0x7000})], writable=[])
    python: Any = Fake(interpreters=interpreters)
    found = match_states(python, core)[7]
    assert (len(found.frames), found.cut) == (2, "not in the core")
    interpreters[0].threads = [state(0, 0)]
    assert match_states(python, core)[7].cut is None


def test_threads_that_could_not_be_stopped() -> None:
    """Frozen ones have no thread pointer, and up to 3.10 states no id of the kernel's: the C stack that names the state's own
    innermost frame tells, and of one thread and one state nothing need be told."""
    first, second = state(0, 0), state(0, 0)
    for number, one in enumerate((first, second)):
        object.__setattr__(one, "native_id", None)
        object.__setattr__(one, "ident", 0x7000 + number)
        object.__setattr__(one, "frames", [Fake(address=0xABCD00 + number)])
    memory = struct.pack("<4Q", 0, 0xABCD01, 0xABCD00, 0)
    areas = [(0x100, 0x110), (0x110, 0x120)]
    threads = [CoreThread(7, 0, {"rsp": 0x100}), CoreThread(8, 0, {"rsp": 0x110})]
    core: Any = Fake(threads=threads, writable=areas, read=lambda at, size: memory[at - 0x100 :][:size])
    python: Any = Fake(interpreters=[Fake(threads=[first, second])])
    assert {tid: found.ident for tid, found in match_states(python, core).items()} == {7: 0x7001, 8: 0x7000}
    alone: Any = Fake(threads=threads[:1], writable=[])
    assert match_states(Fake(interpreters=[Fake(threads=[first])]), alone)[7].ident == 0x7000  # type: ignore[arg-type]


def test_kernel_threads_of_io_uring_have_no_state() -> None:
    """They keep the thread pointer of the thread that made them, which its control block names, and never run its code."""
    one = state(0, 1)
    threads = [CoreThread(9, 0, {"fs_base": 0x7000}), CoreThread(7, 0, {"fs_base": 0x7000})]
    words = {0x7000 + 0x2D0: 7}
    core: Any = Fake(threads=threads, writable=[], u32=words.__getitem__)
    python: Any = Fake(interpreters=[Fake(threads=[one])])
    assert list(match_states(python, core)) == [7]
    words[0x7000 + 0x2D0] = 4711  # its number in a namespace of its own
    assert list(match_states(python, core)) == [7]
