"""Merging native and Python stacks: on synthetic stacks whose merged form is known."""

from __future__ import annotations

import random
from typing import List, Optional, Sequence, Tuple

import pytest

from postmortem.evidence import Frame, NativeFrame, PythonFrame
from postmortem.native.merge import DEEPEST, loop_indices, merge

LOOP_NAMES = ["_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault.cold", "_PyEval_EvalFrameDefault.constprop.0"]


def native(
    function: Optional[str], module: Optional[str] = "/usr/lib/libpython3.12.so.1.0", address: int = 0x1000
) -> NativeFrame:
    return NativeFrame(function, module, address)


def python(function: str) -> PythonFrame:
    return PythonFrame("/app/main.py", 1, function)


def split(stack: Sequence[Frame]) -> Tuple[List[Tuple[PythonFrame, bool]], List[NativeFrame]]:
    """The two stacks that a merged one comes from: a Python frame followed by a native one is an entry frame."""
    calls = []
    for index, frame in enumerate(stack):
        if isinstance(frame, PythonFrame):
            calls.append((frame, isinstance(stack[index + 1], NativeFrame)))
    return calls, [frame for frame in stack if isinstance(frame, NativeFrame)]


def random_stack(rng: random.Random) -> Tuple[Frame, ...]:
    """A whole thread: loops with one Python frame or more each, C functions between them, a beginning below."""
    stack: List[Frame] = [native(f"c_{i}", "/lib/libc.so.6") for i in range(rng.randrange(4))]
    for number in range(rng.randrange(1, 8)):
        stack += [python(f"py_{number}_{i}") for i in range(rng.randrange(1, 5))]
        stack.append(native(rng.choice(LOOP_NAMES)))
        stack += [native(rng.choice(["vectorcall", "slot_tp_call", None])) for _ in range(rng.randrange(4))]
    return (*stack, native("thread_run"), native("clone3", "/lib/libc.so.6"))


@pytest.mark.parametrize("seed", range(200))
def test_split_stacks_merge_back(seed: int) -> None:
    """Splitting any well-formed stack and merging it gives the stack again."""
    stack = random_stack(random.Random(seed))
    calls, natives = split(stack)
    assert merge(calls, natives) == stack


@pytest.mark.parametrize("seed", range(300))
def test_nothing_is_lost_or_doubled_or_reordered(seed: int) -> None:
    """Whatever is cut off either stack, and whatever the entry marks say, both come through whole and in order."""
    rng = random.Random(seed)
    calls, natives = split(random_stack(rng))
    calls = calls[rng.randrange(3) : len(calls) - rng.randrange(3)]
    calls = [(frame, bool(rng.choice([entry, rng.randrange(3)]))) for frame, entry in calls]
    natives = natives[rng.randrange(3) : rng.randrange(1, len(natives) + 1)]
    merged = merge(calls, natives)
    assert [f for f in merged if isinstance(f, PythonFrame)] == [frame for frame, _ in calls]
    assert [f for f in merged if isinstance(f, NativeFrame)] == natives


def test_python_alone_and_native_alone() -> None:
    """With one of the stacks empty the other is the result."""
    assert merge([], [native("main")]) == (native("main"),)
    assert merge([(python("f"), True)], []) == (python("f"),)
    assert merge([], []) == ()


def test_left_over_python_frames_go_to_the_outer_end() -> None:
    """When the native stack breaks off early, the runs that its loops do not account for come last."""
    calls = [(python("inner"), True), (python("middle"), True), (python("outer"), True)]
    natives = [native("read"), native("_PyEval_EvalFrameDefault")]
    assert merge(calls, natives) == (
        natives[0],
        python("inner"),
        natives[1],
        python("middle"),
        python("outer"),
    )


def test_a_loop_without_a_frame_is_the_innermost_one() -> None:
    """When both stacks are whole and a loop is left over, its frame is not there yet, or no longer: not the oldest's."""
    calls = [(python("caller"), True)]
    natives = [
        native("sem_wait"),
        native("_PyEval_EvalFrameDefault"),
        native("slot_tp_finalize"),
        native("_PyEval_EvalFrameDefault"),
        native("main"),
    ]
    assert merge(calls, natives) == (*natives[:3], python("caller"), *natives[3:])


def test_an_empty_loop_in_the_middle_is_counted() -> None:
    """A frame after which two loops end leaves the second of them without Python frames."""
    calls = [(python("__del__"), 2), (python("caller"), 1)]
    natives = [native("_PyEval_EvalFrameDefault", address=i) for i in range(3)] + [native("main")]
    assert merge(calls, natives) == (
        python("__del__"),
        natives[0],
        natives[1],
        python("caller"),
        natives[2],
        natives[3],
    )


def test_a_wrapper_is_no_loop() -> None:
    """PyEval_EvalFrameEx runs nothing where _PyEval_EvalFrameDefault does; alone (up to 3.5) it is the loop."""
    names = ["_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx", "function_code_fastcall", "_PyEval_EvalFrameDefault"]
    assert loop_indices([native(name) for name in names]) == [0, 3]
    assert loop_indices([native("PyEval_EvalFrameEx"), native("main")]) == [0]


def test_tail_calling_interpreters_have_one_handler_a_loop() -> None:
    """The handler counts, and the function that entered it does not count again."""
    names = ["_TAIL_CALL_CALL", "_PyEval_EvalFrameDefault", "vectorcall", "_TAIL_CALL_CALL_KW.cold", "main"]
    assert loop_indices([native(name) for name in names]) == [0, 3]


def test_similar_names_are_no_loops() -> None:
    """A user's own function with a name that only begins like the loop's is native code like any other."""
    assert loop_indices([native("_PyEval_EvalFrameDefaultish"), native("my_PyEval_EvalFrameDefault")]) == []


def test_without_symbols_python_follows_the_frames_inside_the_interpreter() -> None:
    """Stripped of every name, the interpreter's own frames still say what the Python frames called."""
    natives = [
        native("futex_wait", "/lib/libc.so.6"),
        native(None),
        native(None),
        native("start_thread", "/lib/libc.so.6"),
    ]
    assert merge([(python("f"), True)], natives) == (*natives[:3], python("f"), natives[3])


def test_without_symbols_or_interpreter_python_comes_last() -> None:
    """Code of no known interpreter gives no hint: the Python frames are older than all of it."""
    natives = [native(None, "/app/frozen-program"), native(None, None)]
    assert merge([(python("f"), True)], natives) == (*natives, python("f"))


def test_c_that_calls_itself_stands_above_all_python() -> None:
    """An overflow of a thousand frames and more, none of which is an interpreter loop: the loop is beyond them."""
    deep = [native(f"{name}_next", module) for name, module in (("it", "/lib/_it.so"), ("map", "/usr/bin/python3"))]
    stack = deep * (DEEPEST // 2)
    assert merge([(python("work"), True)], stack) == (*stack, python("work"))


def test_a_greenlet_has_the_innermost_loops_alone() -> None:
    """The older part of the native stack belongs to greenlets that it was switched from, whose Python frames are elsewhere."""
    greenlet = "/venv/greenlet/_greenlet.cpython-311-x86_64-linux-gnu.so"
    loop = native("_PyEval_EvalFrameDefault")
    hub = (native("g_initialstub", greenlet), native("loop_run", "/venv/corecext.so"), loop, native("main"))
    calls = [(python("spin"), False), (python("handle"), True), (python("task"), True)]
    natives = [native("lookup"), loop, native("vectorcall"), loop, *hub]
    names = [frame.function for frame in merge(calls, natives)]
    assert names[:8] == [
        "lookup",
        "spin",
        "handle",
        loop.function,
        "vectorcall",
        "task",
        loop.function,
        "g_initialstub",
    ]
    short = [frame.function for frame in merge([(python("run"), True)], natives)]
    assert short[3:6] == ["run", loop.function, "g_initialstub"]
    more = [frame.function for frame in merge([*calls, (python("outer"), True)], natives)]
    assert more[6:9] == [loop.function, "outer", "g_initialstub"]
