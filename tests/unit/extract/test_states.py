"""Thread states of several interpreters, of which some cannot be read."""

from __future__ import annotations

from typing import Any, List, Optional

from postmortem.cpython.chains import Chain
from postmortem.cpython.frames import Frame
from postmortem.cpython.interpreter import ThreadState
from postmortem.extract.states import idents, match_states
from postmortem.memory import CoreThread


class Fake:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def state(interpreter: int, frames: int, cut: Optional[str] = None) -> ThreadState:
    made: List[Frame] = [Fake(address=n) for n in range(frames)]  # type: ignore[misc]
    return ThreadState(
        address=0x1000 * (interpreter + 1), ident=0x7000, native_id=7, attached=None, interpreter=interpreter,
        frames=made, cut=cut, chain=Chain(made, cut, frames),
    )  # fmt: skip


def test_a_caller_whose_stack_is_lost_is_a_gap() -> None:
    """The main interpreter's frames could not be read: what the other one's show is not all, and the state says so."""
    interpreters = [Fake(threads=[state(0, 0, "not in the core")]), Fake(threads=[state(1, 2)])]
    core: Any = Fake(threads=[CoreThread(7, 0, {"fs_base": 0x7000})], writable=[])
    python: Any = Fake(interpreters=interpreters)
    found = match_states(python, core)[7]
    assert (len(found.frames), found.cut) == (2, "not in the core")
    interpreters[0].threads = [state(0, 0)]
    assert match_states(python, core)[7].cut is None


def test_threads_without_a_state_have_an_ident_too() -> None:
    """A thread of C's is between two calls into Python: what it has locked records its thread pointer."""
    core: Any = Fake(threads=[CoreThread(7, 0, {"fs_base": 0x7000}), CoreThread(8, 0, {"fs_base": 0x8000}),
                              CoreThread(9, 0, {})])  # fmt: skip
    assert idents(core, {7: state(0, 1)}) == {0x7000: 7, 0x8000: 8}
