"""Runs inside an interpreter under test: describes its own values through /proc/self/mem and compares.

Prints ``ok`` or raises. Only the standard library and what the package offers to it.
"""

import collections
import enum
import os
import sys
import threading
import types

from postmortem.cpython.state.interpreter import Python
from postmortem.cpython.state.values import DEPTH, ITEMS, LIMIT, Values
from postmortem.memory import ProcMem

Point = collections.namedtuple("Point", "x y")


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Account:
    def __init__(self):
        self.balance = 3  # in the order of the alphabet: 3.14 shares keys in an order of its own
        self.name = "ann"
        self.password = "hunter2"

    def pay(self):
        """A method."""


class Broken(Exception):
    """One of ours."""


class Text(str):
    """A subclass of a built-in type."""


def function():
    """Nothing."""


def coroutine():
    yield 1


EXACT = [
    (None, "None"), (True, "True"), (False, "False"), (..., "..."), (0, "0"), (-5, "-5"), (1 << 100, str(1 << 100)),
    (2.5, "2.5"), (float("inf"), "inf"), (1 - 2j, "(1-2j)"), ("käse\n\x1b[0m", repr("käse\n\x1b[0m")), ("", "''"),
    ("\U0001f40d", "'\U0001f40d'"), (b"a\0b", "b'a\\x00b'"), (b"", "b''"), (bytearray(b"xy"), "bytearray(b'xy')"),
    (bytearray(), "bytearray(b'')"),
    ((), "()"), ((1,), "(1,)"), ((1, "b"), "(1, 'b')"), ([], "[]"), ([1, [2, [3, [4]]]], "[1, [2, <list of 2>]]"),
    ({}, "{}"), ({"a": 1, 2: None}, "{'a': 1, 2: None}"), (set(), "set()"), ({7}, "{7}"),
    (frozenset([7]), "frozenset({7})"), (collections.deque([1, 2]), "deque([1, 2])"),
    (range(3), "range(0, 3)"), (range(0, 9, 2), "range(0, 9, 2)"), (slice(1, None), "slice(1, None, None)"),
    (Point(1, "b"), "Point(x=1, y='b')"), (Color.RED, "Color.RED"), (Level.HIGH, "Level.HIGH"),
    (Text("t"), "Text('t')"), (collections.OrderedDict(a=1), "collections.OrderedDict({'a': 1})"),
    (ValueError("no"), "ValueError(no)"), (KeyError("k", 2), "KeyError('k', 2)"), (Broken(), "Broken()"),
    (os, "<module os>"), (Account, "<class Account>"), (int, "<class int>"), (len, "<built-in len>"),
    (Account(), "<Account balance=3, name='ann', password=<redacted>>"),
    (list(range(12)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … 2 more]"),
    ({"token": "hunter2", "user": "ann"}, "{'token': <redacted>, 'user': 'ann'}"),
    ({b"Cookie": b"hunter2"}, "{b'Cookie': <redacted>}"),
    ([("authorization", "hunter2"), ("host", "h")], "[('authorization', <redacted>), ('host', 'h')]"),
    (["--password", "hunter2", "go"], "['--password', <redacted>, 'go']"),
    ("postgres://ann:hunter2@host/db", "'postgres://<redacted>@host/db'"),
    (10 ** 30_000, "<int of about 30,001 digits>"),
    (types.SimpleNamespace(apiKey="hunter2"), None), (threading.Lock(), "<Lock, unlocked>"),
]  # fmt: skip


def check(values):
    for value, expected in EXACT:
        found = values.describe(id(value))
        assert expected is None or found == expected, (found, expected)
        assert len(found) <= LIMIT and "hunter2" not in found, found
    place = f"{__file__}:{function.__code__.co_firstlineno}"
    assert place in values.describe(id(function), 300) and "function" in values.describe(id(function), 300)
    method = Account().pay
    assert values.describe(id(method), 300).startswith("<bound method ")
    generator = coroutine()
    next(generator)
    assert values.describe(id(generator), 300).startswith("<generator coroutine ")
    assert values.describe(8) == "<unreadable>"


def check_locks(values):
    plain, again = threading.Lock(), threading.RLock()
    with plain, again:
        assert values.describe(id(plain)) == "<Lock, locked>"
        assert values.describe(id(again)) == "<RLock, locked by MainThread>", values.describe(id(again))
    assert values.describe(id(again)) == "<RLock, unlocked>"


def check_bounds(values):
    loop = []
    loop.append(loop)
    assert values.describe(id(loop)) == "[…]"
    long = "x" * 5000
    assert values.describe(id(long), 60).endswith("…") and len(values.describe(id(long), 60)) == 60
    wide = {n: [list(range(100))] * 100 for n in range(100)}
    assert len(values.describe(id(wide), 50)) <= 50
    huge = dict.fromkeys(range(200_000))
    assert values.describe(id(huge)) == "<dict of 200,000>"
    many = list(range(500_000))
    assert values.describe(id(many)).endswith("499,990 more]")
    assert (ITEMS, DEPTH) == (10, 2)


with ProcMem(os.getpid()) as memory:
    reader = Python(memory)
    values = Values(reader.frames, {threading.get_ident(): "MainThread"})
    check(values)
    check_locks(values)
    check_bounds(values)
sys.stdout.write("ok\n")
