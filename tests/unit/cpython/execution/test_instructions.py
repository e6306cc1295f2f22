"""Instructions of code objects of this interpreter, beside what ``dis`` says of them."""

from __future__ import annotations

import dis
import inspect
import sys
from types import CodeType
from typing import Any, Callable, Dict

import pytest

from postmortem.cpython.execution.instructions import Instruction, Instructions, after
from postmortem.cpython.execution.opcodes import opcodes
from postmortem.cpython.runtime.releases import LAYOUTS

from .ownprocess import code_of, objects


def loop(things: Any) -> None:
    before = len(things)
    for thing in things:
        thing.first()
        thing.second()
    print(before)


def guarded(thing: Any) -> None:
    try:
        thing.first()
    except ValueError:
        thing.caught()
    thing.last()


def decoded(function: Callable[..., Any]) -> Dict[int, Instruction]:
    found = Instructions(objects()).of(code_of(function))
    assert found is not None
    return found


def using(function: Callable[..., Any], name: str) -> int:
    """The offset of the instruction that loads an attribute of that name."""
    return next(each.offset for each in dis.get_instructions(function) if each.argval == name)


@pytest.mark.parametrize("function", [loop, guarded, inspect.getsource, dis.dis])
def test_instructions_are_those_of_dis(function: Callable[..., Any]) -> None:
    """Names, operands and jumps; extended operands belong to the instruction behind them."""
    known = [each for each in dis.get_instructions(function) if each.opname not in ("EXTENDED_ARG", "CACHE")]
    found = list(decoded(function).values())
    assert [(each.name, each.argument) for each in found] == [(each.opname, each.arg or 0) for each in known]
    jumps = [each.argval for each in known if each.opcode in dis.hasjrel or each.opcode in dis.hasjabs]
    assert [each.target for each in found if each.target is not None] == jumps


def test_what_can_still_run() -> None:
    """All that follows, the whole body of a loop around the instruction, and handlers of exceptions; nothing else."""
    instructions = decoded(loop)
    behind = after(instructions, using(loop, "second"))
    assert {using(loop, "first"), using(loop, "second"), using(loop, "print")} <= behind
    assert using(loop, "len") not in behind and using(loop, "first") not in after(instructions, using(loop, "print"))
    rest = after(decoded(guarded), using(guarded, "first"))
    assert {using(guarded, "caught"), using(guarded, "last")} <= rest and using(guarded, "first") not in rest


def test_a_function_that_has_not_begun_can_run_as_a_whole() -> None:
    """An offset before the first instruction."""
    assert 0 in after(decoded(loop), -2)


def test_nothing_behind_an_excluded_instruction_counts() -> None:
    """Unless another way leads there."""
    instructions = decoded(guarded)
    rest = after(instructions, -2, frozenset((using(guarded, "last"), using(guarded, "caught"))))
    assert using(guarded, "first") in rest and using(guarded, "last") not in rest


@pytest.mark.parametrize("version", sorted(LAYOUTS))
def test_every_release_has_opcodes(version: Any) -> None:
    """Those that the evaluation depends on, each with a number of its own."""
    table = opcodes(version)
    assert table is not None
    names = {opcode.name for opcode in table.values()}
    assert {"LOAD_ATTR", "LOAD_GLOBAL", "LOAD_FAST", "STORE_ATTR", "FOR_ITER", "RETURN_VALUE"} <= names
    assert ("CALL" in names) == (version >= (3, 11))


def test_numbers_of_this_release() -> None:
    """All plain instructions, and no others."""
    table = opcodes(sys.version_info[:2])
    assert table is not None
    assert {name: table[number].name for name, number in dis.opmap.items() if number < 256} == {
        name: name for name, number in dis.opmap.items() if number < 256
    }


def test_code_that_is_not_understood() -> None:
    """None for bytes that are no instructions, and for a release without a row."""
    code = code_of(loop)
    found = Instructions(objects())
    found._table = {}
    assert found.of(code) is None
    assert opcodes((2, 7)) is None and isinstance(loop.__code__, CodeType)
