"""Line tables against what each interpreter says of its own code, on code whose lines go far, back, and nowhere."""

from __future__ import annotations

import json
import os
import subprocess
from typing import List, Union

import pytest

from postmortem.cpython.objects.linetable import FORMATS
from postmortem.cpython.runtime.releases import LAYOUTS

from ..support.interpreters import matrix

pytestmark = [pytest.mark.live, pytest.mark.parametrize("python", matrix())]

#: Prints [[table in hex, first line, bytes of code, line of every instruction], …] of compiled sources.
TABLES = r"""
import dis, json, sys, types
def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)
def lines(code):
    if hasattr(code, "co_lines"):
        stretches = list(code.co_lines())
    else:
        starts = list(dis.findlinestarts(code))
        stretches = [(at, end, line) for (at, line), (end, _) in zip(starts, starts[1:] + [(len(code.co_code), 0)])]
    found = {at: line for start, end, line in stretches for at in range(start, end, 2)}
    return [found.get(at) for at in range(0, len(code.co_code), 2)]
table = "co_linetable" if hasattr(types.CodeType, "co_linetable") else "co_lnotab"
sources = [
    "def f():\n" + "\n" * 300 + "    return 1\n" + "\n" * 200 + "def g(): pass\n",
    "x = [" + ", ".join("a%d.b" % n for n in range(900)) + "]\ny = 1\n",
    "def f(x):\n    return g(\n        x,\n        *[\n            y\n            for y in x\n        ],\n    )\n",
    "def f(x):\n" + "    x = g(" + "\n" * 140 + "x)\n    return x\n",
    "async def f(x):\n    async with x as y, \\\n            y:\n        async for z in y:\n            yield z\n",
    "try:\n    f()\nexcept A as e:\n    g()\nexcept B:\n    pass\nfinally:\n    h()\nwhile 1:\n    k()\n",
    "class C:\n    @a\n    @b\n    def m(self):\n        if self: return\n        with self as s:\n            pass\n",
]
found = []
for source in sources:
    for code in codes(compile(source, "s", "exec")):
        found.append([getattr(code, table).hex(), code.co_firstlineno, len(code.co_code), lines(code)])
print(json.dumps(found))
"""


def test_lines_of_every_instruction(python: Union[str, os.PathLike[str]]) -> None:
    """Every instruction is at the line that the interpreter itself says."""
    words = [os.fspath(python), "-c", TABLES]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    version = subprocess.run(
        [*words[:2], "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()
    read = FORMATS[LAYOUTS[(int(version[0]), int(version[1]))].line_table]
    checked = 0
    for table, first, size, expected in json.loads(done.stdout):
        lines: List[object] = []
        for place in read(bytes.fromhex(table), first, size):
            lines += [place.line] * (place.end // 2 - len(lines))
        assert lines[: len(expected)] == expected
        checked += len(expected)
    assert checked > 1_000
