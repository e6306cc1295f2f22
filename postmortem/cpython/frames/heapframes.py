"""Frames up to 3.10: objects on the heap, one C call of the interpreter loop each.

The block stack of a PyFrameObject lists the `with`, `for` and `try` statements around the current instruction, each
with the height of the value stack that it keeps; later releases derive this from tables.

Sources: Include/cpython/frameobject.h, Objects/frameobject.c and Python/ceval.c of 3.8-3.10, SETUP_WITH.
"""

from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat, Objects
from ..objects.code import Code
from .frame import Frame, Frames, Generator, Visit, word

#: CO_MAXBLOCKS (Include/cpython/code.h); size of PyTryBlock in bytes: type, handler, level, three ints.
_MAX_BLOCKS, _BLOCK = 20, 12
#: Include/opcode.h, the same in 3.8-3.10. A block that `with` set up has type SETUP_FINALLY, too.
_YIELD_FROM, _SETUP_FINALLY, _SETUP_WITH, _EXTENDED_ARG, _SETUP_ASYNC_WITH = 72, 122, 143, 144, 154


def frames_of(objects: Objects) -> Frames:
    """Return the reader of frames for an interpreter's layout."""
    return HeapFrames(objects) if objects.layout.heap_frames else Frames(objects)


class _Block(NamedTuple):
    """A row of the block stack."""

    type: int
    handler: int  # byte offset in the code
    level: int  # value-stack height that it keeps


class HeapFrames(Frames):
    """Frames of 3.8, 3.9 and 3.10."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._size = objects.layout.fr_blockstack
        self._withs: Dict[int, Dict[int, int]] = {}

    def visit(self, address: int) -> Visit:
        """Read one step of a chain in one read. Raises Fault or NotThat."""
        raw = self.objects.memory.read(address, self._size)
        return Visit(self._made(address, raw), False, word(raw, self.objects.layout.fr_previous))

    def _made(self, address: int, raw: bytes) -> Optional[Frame]:
        """Build the frame object at an address, started or not. Raises Fault or NotThat.

        Before it starts its offset is that of instruction -1, and its line that of the `def`, as in the interpreter.
        """
        layout = self.objects.layout
        code = self.codes.get(word(raw, layout.fr_code))
        lasti = int.from_bytes(raw[layout.fr_instr : layout.fr_instr + 4], "little", signed=True)
        if not -1 <= lasti < 1 << 30:
            raise NotThat("instruction outside its code")
        return Frame(address, code, lasti * layout.instr_unit, 0, True)

    def value_stack(self, frame: Frame) -> Tuple[int, ...]:
        """Return all slots of the value stack, in use or stale; empty if unreadable."""
        memory = self.objects.memory
        try:
            return memory.words(self._stack_start(frame), frame.code.stacksize)
        except (Fault, NotThat):
            return ()

    def _stack_start(self, frame: Frame) -> int:
        """Return the address of the value stack. Raises Fault or NotThat."""
        layout = self.objects.layout
        start = self.objects.memory.u64(frame.address + layout.fr_valuestack)
        if not 0 <= start - frame.address - layout.fr_localsplus <= 1 << 20:
            raise NotThat("the value stack is outside of its frame")
        return start

    def stack_top(self, frame: Frame) -> Optional[int]:
        """Return what a suspended frame awaits: the topmost value, if the next instruction is YIELD_FROM; else None.

        Source: Objects/genobject.c, _PyGen_yf.
        """
        code = frame.code.bytecode()
        following = frame.lasti + 2
        if not 2 <= following < len(code) or code[following] != _YIELD_FROM:
            return None
        height = self.height(frame)
        if not height or height == frame.code.nlocalsplus:
            return None
        try:
            return self.objects.memory.u64(self._stack_start(frame) + 8 * (height - frame.code.nlocalsplus - 1)) or None
        except (Fault, NotThat):
            return None

    def height(self, frame: Frame) -> Optional[int]:
        """Return the slots in use of a suspended frame, locals included; None for a running one."""
        try:
            values = self._height(frame, self._stack_start(frame))
        except (Fault, NotThat):
            return None
        return frame.code.nlocalsplus + values if 0 <= values <= frame.code.stacksize else None

    def _height(self, frame: Frame, start: int) -> int:
        """Return the number of values on a suspended frame's stack. Raises Fault.

        3.10 stores their number, earlier releases a pointer behind them.
        """
        memory, layout = self.objects.memory, self.objects.layout
        if layout.fr_state >= 0:
            return memory.i32(frame.address + layout.fr_stacktop)
        return (memory.u64(frame.address + layout.fr_stacktop) - start) // 8

    def generator(self, address: int) -> Generator:
        """Return the state of a generator or coroutine object. Raises Fault or NotThat.

        gi_frame, cr_frame and ag_frame have the same offset and are NULL in a finished generator.
        """
        memory, layout = self.objects.memory, self.objects.layout
        held = memory.u64(address + layout.gen_iframe)
        if not held:
            return Generator("finished", None)
        frame = self.frame(held)
        if frame is None:
            return Generator("finished", None)
        if layout.fr_state >= 0:
            state = memory.u8(held + layout.fr_state)
            running, finished = state == 0, 0 < state < 128
        else:
            running, finished = memory.u8(held + layout.fr_executing) == 1, False
        if finished:
            return Generator("finished", None)
        if running:
            return Generator("running", frame)
        return Generator("created" if frame.lasti < 0 else "suspended", frame)

    # ------------------------------------------------------------------ blocks

    def kept_depth(self, frame: Frame) -> int:
        """Return how many slots of the value stack survive an exception at the current instruction."""
        return max((block.level for block in self._blocks(frame)), default=0)

    def with_line(self, frame: Frame, slot: int) -> Optional[int]:
        """Return the line of the `with` whose ``__exit__`` is in a slot of the value stack; None if unknown.

        The block that keeps slot + 1 values and has a `with`'s handler leads to the instruction that set it up. The
        line is that of the context manager, as since 3.11: a `with` over several lines has one per manager.
        """
        withs = self._with_handlers(frame.code)
        for block in self._blocks(frame):
            if block.level == slot + 1 and block.handler in withs:
                return frame.code.line(withs[block.handler])
        return None

    def _blocks(self, frame: Frame) -> Iterator[_Block]:
        """Yield the active exception-handling blocks, outermost first; none if unreadable."""
        layout, memory = self.objects.layout, self.objects.memory
        try:
            count = memory.i32(frame.address + layout.fr_iblock)
            if not 0 <= count <= _MAX_BLOCKS:
                return
            for index in range(count):
                at = frame.address + layout.fr_blockstack + _BLOCK * index
                kind, handler, level = (memory.i32(at + 4 * field) for field in range(3))
                if kind == _SETUP_FINALLY and 0 <= level <= frame.code.stacksize:
                    yield _Block(kind, handler * layout.instr_unit, level)
        except Fault:
            return

    def _with_handlers(self, code: Code) -> Dict[int, int]:
        """Map the handler's offset of each `with` statement to that of the instruction pushing its manager."""
        found = self._withs.get(code.address)
        if found is None:
            found = self._withs[code.address] = dict(with_handlers(code.bytecode(), self.objects.layout.instr_unit))
        return found


def with_handlers(code: bytes, unit: int) -> Iterator[Tuple[int, int]]:
    """Yield (offset of the handler, offset of the instruction before SETUP_WITH or SETUP_ASYNC_WITH) in bytes.

    Jumps count in units of ``unit`` bytes from the following instruction on.
    """
    argument = before = 0
    for at in range(0, len(code) - 1, 2):
        argument = (argument << 8 | code[at + 1]) & 0xFFFFFFFF
        if code[at] in (_SETUP_WITH, _SETUP_ASYNC_WITH):
            yield at + 2 + argument * unit, before
        if code[at] != _EXTENDED_ARG:
            argument, before = 0, at
