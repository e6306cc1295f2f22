"""Who waits for whom: one directed graph over threads, tasks and processes, made of evidence and of nothing else.

An ``Agent`` acts: a thread, a task, or a process as a whole. An ``Edge`` is one thing that an agent needs before it can go
on, with everyone who could give it. From these follow

- ``cycles``: each needs the next one, so none can go on;
- ``stuck``: the greatest set of agents of whom nobody can ever move again, because each waits without end and everyone
  who could end its wait is in the set, too; "proven" when all that was used was read, "likely" when something was inferred;
- ``roots``: those of them who are to be woken by nobody, or by one who is gone;
- ``chain``: the way from a waiter to the end of its wait;
- ``reasons``: the same as sentences.

``None`` and gaps never prove anything: an agent of whom nothing is known can move.
"""

from __future__ import annotations

from .agents import Agent, Place, Places, program, thread_label
from .chains import Chain
from .cycles import Cycle
from .edges import Edge
from .graph import WAKES, WaitGraph, graph_of
from .reasons import known_from

__all__ = [
    "WAKES",
    "Agent",
    "Chain",
    "Cycle",
    "Edge",
    "Place",
    "Places",
    "WaitGraph",
    "graph_of",
    "known_from",
    "program",
    "thread_label",
]
