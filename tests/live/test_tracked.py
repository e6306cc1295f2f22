"""The garbage collector's lists against what gc.get_objects() says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postmortem.cpython.heap.gclists import counts, tracked
from postmortem.cpython.objects.builtins import NotThat
from postmortem.cpython.state.interpreter import Python
from postmortem.memory import ProcMem

from ..support.interpreters import Program, matrix

pytestmark = [pytest.mark.live]

PROGRAM = """
import collections, gc, json, sys
class Marker:
    pass
markers = [Marker() for _ in range(37)]
for marker in markers:
    marker.me = marker  # only the collector's lists lead to some of them
kept = markers[:5]
old = [Marker() for _ in range(11)]
for marker in old:
    marker.me = marker
gc.collect()  # these move to the oldest generation
gc.disable()
def counting():
    yield 1
generators = [counting() for _ in range(23)]
for generator in generators:
    next(generator)
del markers, old
objects = gc.get_objects()
known = sum(type(o).__name__ == "generator" for o in objects)
print(json.dumps({"Marker": 48, "generator": known, "all": len(objects) + gc.get_freeze_count(),
                  "kept": [id(marker) for marker in kept]}), flush=True)
del objects
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("python", matrix())
def test_every_container_is_found(python: Any, tmp_path: Path) -> None:
    """Objects of all generations, unreachable ones too, each once; as many as the collector itself lists."""
    with Program(python, PROGRAM, tmp_path) as program, ProcMem(program.pid) as memory:
        said = json.loads(program.lines[0])
        reader = Python(memory)
        if python.free_threaded:
            with pytest.raises(NotThat):
                counts(reader, reader.interpreters[0])
            return
        addresses = list(tracked(reader, reader.interpreters[0]))
        found = counts(reader, reader.interpreters[0])
    assert len(set(addresses)) == len(addresses)
    assert set(said["kept"]) <= set(addresses)
    assert (found["Marker"], found["generator"]) == (said["Marker"], said["generator"])
    assert abs(len(addresses) - said["all"]) <= 50  # the list itself, and what printing made and forgot
