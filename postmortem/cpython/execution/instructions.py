"""The instructions of a code object, and those that can run after a given one.

Specialised instructions are read as the plain ones that they stand for, since both have the same operand and caches.

Sources: Lib/dis.py and Python/ceval.c of 3.8-3.10, Python/bytecodes.c of 3.11-3.15. Jumps are absolute or forward up to
3.10, where 3.10 counts in code units and earlier releases in bytes; relative since 3.11.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...memory import Fault
from ..objects.builtins import NotThat, Objects
from ..objects.code import Code, Handler
from .opcodes import opcodes

#: Most instructions read of one code object.
MAX_INSTRUCTIONS = 20_000
_ABSOLUTE = frozenset((
    "JUMP_ABSOLUTE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP",
    "JUMP_IF_NOT_EXC_MATCH",
))  # fmt: skip
_RELATIVE = frozenset((
    "FOR_ITER", "JUMP_FORWARD", "SETUP_FINALLY", "SETUP_WITH", "SETUP_ASYNC_WITH", "CALL_FINALLY", "SEND",
))  # fmt: skip
_NO_FALL = frozenset((
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT", "INTERPRETER_EXIT",
))  # fmt: skip


class Instruction(NamedTuple):
    """A plain instruction; offsets in bytes."""

    offset: int
    name: str
    argument: int
    following: Optional[int]  # where execution goes on without a jump; None: it does not
    target: Optional[int]  # of its jump, or of the handler that it sets up
    handler: Optional[int] = None  # where an exception leads (3.11+)


class Instructions:
    """Decodes code objects, and caches them by address."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: Dict[int, Optional[Dict[int, Instruction]]] = {}
        self._table = opcodes(objects.layout.version)

    def of(self, code: Code) -> Optional[Dict[int, Instruction]]:
        """Return offset → instruction, in order; None if unreadable or not understood."""
        if code.address not in self._known:
            try:
                found = {each.offset: each for each in self._decoded(code)}
            except (Fault, NotThat):
                found = {}
            self._known[code.address] = found or None
        return self._known[code.address]

    def _decoded(self, code: Code) -> Iterator[Instruction]:
        """Yield the instructions in order. Raises Fault or NotThat."""
        layout, table = self._objects.layout, self._table
        if table is None:
            raise NotThat("no opcodes of this release")
        old = layout.heap_frames
        raw = code.bytecode() if old else self._objects.memory.read(code.start, code.size())
        if len(raw) > 2 * MAX_INSTRUCTIONS:
            raise NotThat("implausibly long")
        unit = layout.instr_unit if old else 2
        handlers = [] if old else sorted(code.handlers())  # of disjoint ranges
        starts = [handler.start for handler in handlers]
        at, argument, begun = 0, 0, 0
        while at + 1 < len(raw):
            opcode = table.get(raw[at])
            if opcode is None:
                raise NotThat(f"unknown opcode {raw[at]}")
            argument = (argument << 8 | raw[at + 1]) & 0xFFFFFFFF
            behind = at + 2 + 2 * opcode.caches
            name = opcode.name
            if name == "EXTENDED_ARG":
                at = behind
                continue
            following = None if name in _NO_FALL else behind
            handler = None if old else self._handler(handlers, starts, at)
            target = self._target(name, argument, behind, unit, old)
            yield Instruction(begun, name, argument, following, target, handler)
            at, argument, begun = behind, 0, behind

    @staticmethod
    def _handler(handlers: Sequence[Handler], starts: Sequence[int], at: int) -> Optional[int]:
        index = bisect_right(starts, at) - 1
        return handlers[index].target if index >= 0 and at < handlers[index].end else None

    @staticmethod
    def _target(name: str, argument: int, behind: int, unit: int, old: bool) -> Optional[int]:
        """Return where an instruction jumps; None if it never does."""
        if old:
            if name in _ABSOLUTE:
                return argument * unit
            return behind + argument * unit if name in _RELATIVE else None
        if name in _RELATIVE or "JUMP" in name:
            return behind + (-2 if "BACKWARD" in name else 2) * argument
        return None


def used_name(name: str, argument: int, version: Tuple[int, int]) -> Optional[int]:
    """Return the index in co_names of what an instruction loads; None for other instructions."""
    if name in ("LOAD_NAME", "LOAD_METHOD") or (name == "LOAD_GLOBAL" and version < (3, 11)):
        return argument
    if name == "LOAD_ATTR":
        return argument >> 1 if version >= (3, 12) else argument
    if name == "LOAD_SUPER_ATTR":
        return argument >> 2
    return argument >> 1 if name == "LOAD_GLOBAL" else None


def after(instructions: Dict[int, Instruction], offset: int, without: FrozenSet[int] = frozenset()) -> Set[int]:
    """Return the offsets of all instructions that can run after the one at an offset, by jumps and exceptions too.

    ``without``: instructions behind which the search does not go on; they are not among the result.

    That one itself is among them only if a loop leads back to it. An offset before the first instruction stands for a
    function that has not begun: all that can be reached from its start.
    """
    if offset < 0:
        start: Tuple[Optional[int], ...] = (0,)
    else:
        current = instructions.get(offset) or _around(instructions, offset)
        start = (current.following, current.target, current.handler) if current is not None else ()
        start += tuple(_entered(instructions, offset))
    found: Set[int] = set()
    waiting: List[int] = [each for each in start if each is not None]
    while waiting:
        at = waiting.pop()
        each = instructions.get(at)
        if each is None or at in found or at in without:
            continue
        found.add(at)
        waiting += [to for to in (each.following, each.target, each.handler) if to is not None and to not in found]
    return found


def _around(instructions: Dict[int, Instruction], offset: int) -> Optional[Instruction]:
    """Return the last instruction that begins before an offset: operands may be extended, and caches follow."""
    before = [at for at in instructions if at <= offset]
    return instructions[max(before)] if before else None


def _entered(instructions: Dict[int, Instruction], offset: int) -> Iterator[Optional[int]]:
    """Yield the handlers of statements that an instruction lies in, up to 3.10, where instructions set them up."""
    for each in instructions.values():
        if each.name.startswith("SETUP_") and each.target is not None and each.offset < offset < each.target:
            yield each.target
