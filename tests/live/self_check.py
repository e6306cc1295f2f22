"""Runs inside an interpreter under test: reads its own objects through /proc/self/mem and compares.

Prints ``ok`` or raises. Only the standard library and what the package offers to it.
"""

import argparse
import asyncio.base_events
import os
import subprocess
import sys
import threading
import types

from postmortem.cpython.attributes import attributes, slot
from postmortem.cpython.code import Code
from postmortem.cpython.interpreter import Python
from postmortem.cpython.objects import NotThat
from postmortem.memory import ProcMem


class Plain:
    def __init__(self):
        self.first, self.second = 1, "two"


class Slotted:
    __slots__ = ("one", "two")


class Grown(Plain):
    """More attributes than shared keys hold, and one removed: forces an ordinary dict."""

    def __init__(self):
        super().__init__()
        for index in range(60):
            setattr(self, f"extra_{index}", index)
        del self.first


def functions(module):
    for value in vars(module).values():
        if isinstance(value, types.FunctionType):
            yield value.__code__
        if isinstance(value, type):
            yield from (v.__code__ for v in vars(value).values() if isinstance(v, types.FunctionType))


def check_objects(objects):
    texts = ["", "plain", "käse", "\u20ac uro", "\U0001f40d", "x" * 3000]
    for text in texts:
        assert objects.text(id(text)) == text, text
    assert objects.text(id("\udc80")) == "\\udc80"
    for number in (0, 1, -1, 255, 256, 1 << 31, -(1 << 40), 123456789012345678901234567890):
        assert objects.integer(id(number)) == number, number
    assert objects.number(id(2.5)) == 2.5
    items = ["a", "b", ("c",)]
    assert objects.items(id(items)) == tuple(map(id, items))
    numbers = {1, 2, "three"}
    assert set(objects.set_items(id(numbers))) == set(map(id, numbers))
    mapping = {"a": 1, "b": None, 3: "c"}
    del mapping["a"]
    assert dict(objects.dict_items(id(mapping))) == {id(k): id(v) for k, v in mapping.items()}
    try:
        objects.text(id(5))
    except NotThat:
        pass
    else:
        raise AssertionError("an int was read as a str")


def check_attributes(objects):
    for instance in (Plain(), Grown(), Plain()):
        assert attributes(objects, id(instance)) == {k: id(v) for k, v in vars(instance).items()}, type(instance)
    shown = Plain()
    vars(shown)  # makes the dict real
    assert attributes(objects, id(shown)) == {k: id(v) for k, v in vars(shown).items()}
    slotted = Slotted()
    slotted.one = "x"
    assert slot(objects, id(slotted), "one") == id(slotted.one)
    assert slot(objects, id(slotted), "two") is None


def check_lines(objects):
    count = 0
    for module in (threading, subprocess, argparse, asyncio.base_events):
        for code in functions(module):
            read = Code(objects, id(code))
            assert (read.filename, read.name, read.qualname) == (code.co_filename, code.co_name, code.co_qualname)
            assert read.local_names()[: code.co_nlocals] == code.co_varnames[: code.co_nlocals]
            for start, end, line in code.co_lines():
                for offset in range(start, end, 2):
                    assert read.line(offset) == line, (code, offset)
                    count += 1
    assert count > 10_000


def main():
    memory = ProcMem(os.getpid())
    python = Python(memory)
    assert python.runtime.version == sys.version_info[:3], python.runtime.version
    assert not python.problems, python.problems
    assert abs(python.interpreters[0].gil.interval_s - sys.getswitchinterval()) < 1e-9
    check_objects(python.objects)
    check_attributes(python.objects)
    check_lines(python.objects)
    print("ok")


main()
