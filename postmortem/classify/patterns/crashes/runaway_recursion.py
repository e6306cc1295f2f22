"""A function calls itself without end, or so deeply that it takes forever.

**What it looks like.** A thread uses a whole core, and its stack repeats one cycle of functions many times, from the same
outer frames in all samples.

**Easily mistaken for** `python-busy-loop`; a recursive descent or a walk over a deep tree that returns all the time:
its stack is shallow in some samples.

**Why it hangs.** The data is cyclic (a folder that links to its parent, a part that contains itself), the base case
is never reached, or each call makes several without caching results, which doubles the work with each level.

**Remedy.** Remember what was visited, check the base case, keep results (`functools.lru_cache`); and do not raise the
recursion limit instead.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ....evidence import Process, PythonFrame, Task, Thread
from ....findings import Template
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.knowledge import is_library, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern

PATTERN = Pattern(
    id="runaway-recursion",
    tier="specific",
    title="a recursion without end, or far too deep",
    explanation=(
        "A function has called itself, directly or through others, over and over without returning to where it began. "
        "Either its data is cyclic, or nothing ends it before the recursion limit, or every call makes several more."
    ),
    remedy=(
        "Pass on a set of what was visited already, or a depth with a limit; reuse results that are known "
        "(functools.lru_cache); do not raise sys.setrecursionlimit instead."
    ),
    needs=("window",),
    references=("https://docs.python.org/3/library/sys.html#sys.setrecursionlimit",),
)  # fmt: skip

#: Turns on the stack in every sample: from STAYS on the match is likely, from MAY_STAY on possible. Recursive descent through
#: documents measures 0-10, a walk of a tree at times the depth of the tree; endless recursion has hundreds.
STAYS, MAY_STAY = 40, 8
#: Least number of turns at the moment of capture; fewer are not deep.
DEEP = 12
#: Turns that no recursion of a program with the interpreter's own limit has: sys.getrecursionlimit() is 1000 unless raised.
VERY_DEEP = 1000
#: Least share of a core, used or waited for, of a recursion that waits in between.
WORKS = 0.6
#: One sample in this number may be shallower.
NEARLY = 20

_WORKS_INSIDE = Template("{thread} is deep in {function}, and works there without recursing further")
_COMES_BACK = Template("{thread} recurses in {function}, but returns: its stack is shallow at times")
_SUMMARY = Template("{thread} recurses without returning: {names: → }, {times} times at {frame}")
_DEPTH = Template("{thread} is {depth} Python frames deep: {names: → } is there {times} times")
_AWAITS_ITSELF = Template("{task} recurses without returning: {name} awaits itself {times} times at {frame}")
_GOES_ON = Template("{task} goes on all the time, and {depth} coroutines deep")
_ONE_MOMENT = Template("one moment only: a capture of the running process shows whether it returns")
_VERY_DEEP = Template(
    "it could not be sampled; it is deeper than the {limit} frames that the interpreter allows unless told otherwise"
)
_STAYED = Template("{turns} of these repetitions were on its stack in every sample over {seconds:.1f} s")
_USED = Template("it used {share:.0%} of a core meanwhile")


class Turn(NamedTuple):
    """The repeating part of a stack."""

    frames: Tuple[PythonFrame, ...]  # one turn, most recent call first
    times: int
    depth: int


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each computing thread with a deep recursion: a match if it does not return."""
    for process in view.pythons:
        yield from (_of_task(view, process, task, turn) for task in process.tasks for turn in [_awaited(task)] if turn)
        for thread in process.threads:
            turn = _turn(thread)
            if turn is None or turn.times < DEEP:
                continue
            deep = turn.times >= STAYS
            moves = view.moves(thread)  # it may wait for a moment at each level, as for a peer
            if thread.wait is not None and not (deep and moves):
                continue
            if not thread.samples and view.window and turn.times >= VERY_DEEP:
                yield _match(view, process, thread, turn, None)
                continue
            computes = view.computes(thread)
            if computes is None and deep and thread.gil == "holds":
                yield _match(view, process, thread, turn, None)
            if not computes and not (deep and thread.samples and (moves or (view.wanted_share(thread) or 0) >= WORKS)):
                continue
            if _stands(thread, turn):
                yield No(_WORKS_INSIDE(thread=clauses.named(thread), function=turn.frames[0].function))
                continue
            stays = _stays(view, thread, turn)
            if stays < MAY_STAY:
                yield No(_COMES_BACK(thread=clauses.named(thread), function=turn.frames[0].function))
                continue
            yield _match(view, process, thread, turn, stays)


def _awaited(task: Task) -> Optional[Turn]:
    """Return the coroutine that awaits itself over and over in a task which goes on all the time; None if there is none."""
    counted = Counter((frame.file, frame.function) for frame in task.stack) if task.moved else Counter()
    for key, times in counted.most_common(1):
        if times >= VERY_DEEP:
            return Turn(
                tuple(frame for frame in task.stack if (frame.file, frame.function) == key)[:1], times, len(task.stack)
            )
    return None


def _of_task(view: View, process: Process, task: Task, turn: Turn) -> Match:
    """Return the match of a task whose coroutine awaits itself."""
    who, frame = clauses.task(task), turn.frames[0]
    return Match(
        confidence="likely",
        summary=_AWAITS_ITSELF(task=who, name=frame.function, times=turn.times, frame=frame),
        evidence=(_GOES_ON(task=who, depth=turn.depth),),
        culprits=(view.culprit_of(Agent(process.pid, task=task.id), frame),),
        pid=process.pid,
    )


def _turn(thread: Thread) -> Optional[Turn]:
    """Return the repeating part of the stack: as extracted, else of the function that is on it most often; None without one."""
    known = thread.recursion
    if known is not None and known.cycle and known.times >= DEEP:
        return Turn(known.cycle, known.times, known.depth)
    frames = thread.python
    counted = Counter((f.file, f.function) for f in frames if f.function != "<module>")
    if not counted:
        return None
    key, times = counted.most_common(1)[0]
    first = next(i for i, f in enumerate(frames) if (f.file, f.function) == key)
    again = next((i for i, f in enumerate(frames) if i > first and (f.file, f.function) == key), first + 1)
    return Turn(frames[first:again], times, len(frames))


def _stays(view: View, thread: Thread, turn: Turn) -> int:
    """Return the number of turns that were on the stack all the time.

    These are the turns in the outer frames shared by all samples, or the number that nearly every sample has, whichever
    is larger.
    """
    stacks = [frames[::-1] for _count, frames in view.samples(thread)]
    if not stacks:
        return 0
    shared = min(len(stack) for stack in stacks)
    first = stacks[0]
    for stack in stacks[1:]:
        same = next((i for i in range(shared) if not _alike(first[i], stack[i])), shared)
        shared = min(shared, same)
    functions = {(f.file, f.function) for f in turn.frames}
    size = max(1, len(functions))

    def turns(frames: Sequence[PythonFrame]) -> float:
        return sum((f.file, f.function) in functions for f in frames) / size

    depths = [(turns(one.frames) * one.depth / len(one.frames), one.count) for one in thread.samples if one.frames]
    each = sorted(depth for depth, count in depths for _ in range(count))
    return int(max(turns(first[:shared]), each[len(each) // NEARLY]))


def _stands(thread: Thread, turn: Turn) -> bool:
    """Return whether no turn began or ended between samples: then the work is at the bottom, in a loop of the innermost call."""
    functions = {(f.file, f.function) for f in turn.frames}
    inside = [[(f.file, f.function) in functions for f in one.frames] for one in thread.samples]
    depths = [one.depth - at.index(True) if True in at else 0 for one, at in zip(thread.samples, inside)]
    return bool(depths) and max(depths) - min(depths) < len(turn.frames)


def _alike(one: PythonFrame, other: PythonFrame) -> bool:
    """Return whether two frames are at the same line of the same function."""
    return (one.file, one.line, one.function) == (other.file, other.line, other.function)


def _match(view: View, process: Process, thread: Thread, turn: Turn, stays: Optional[int]) -> Match:
    who, names = clauses.named(thread), tuple(dict.fromkeys(f.function for f in reversed(turn.frames)))
    facts = [_DEPTH(thread=who, depth=turn.depth, names=names, times=turn.times)]
    beyond = stays is None and bool(view.window) and turn.times >= VERY_DEEP
    if beyond:
        facts.append(_VERY_DEEP(limit=VERY_DEEP))
    elif stays is None:
        facts.append(_ONE_MOMENT())
    else:
        facts.append(_STAYED(turns=stays, seconds=view.window or 0))
        facts.append(_USED(share=view.cpu_share(thread) or 0))
    return Match(
        confidence="likely" if beyond or (stays is not None and stays >= STAYS) else "possible",
        summary=_SUMMARY(thread=who, names=names, times=turn.times, frame=_own(thread, turn)[0]),
        evidence=tuple(facts),
        culprits=tuple(view.culprit(process, frame, thread) for frame in view.loops_around(_own(thread, turn)[:4])),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, thread.tid)),
        pid=process.pid,
    )


def _own(thread: Thread, turn: Turn) -> List[PythonFrame]:
    """Return the program's frames of a turn; for a library's recursion, the program's line that called it."""
    called = own_frame(thread.python)
    return [f for f in turn.frames if not is_library(f)] or ([called] if called is not None else list(turn.frames))
