"""The wait-for graph: one directed graph over threads, tasks and processes, built from evidence alone.

An ``Agent`` is a thread, a task, or a process as a whole. An ``Edge`` is one thing that an agent needs before it can
go on, with every agent that could provide it. Derived from these:

- ``cycles``: wait-for cycles, in which each agent needs the next;
- ``stuck``: the greatest set of agents that can never move again, because each waits without a deadline and every
  agent that could end its wait is in the set, too; "proven" if every fact used was read and no other event, such as a
  signal, could intervene, else "likely";
- ``roots``: members of that set that no agent can wake, or whose holder is gone;
- ``chain``: the path from a waiter to the end of its wait;
- ``reasons``: the derivation, step by step.

``None`` and gaps never prove anything: an agent without known waits can move.
"""

from __future__ import annotations

from .agents import Agent, Place, Places, program
from .chains import Chain
from .cycles import Cycle
from .edges import Edge
from .graph import GOES_ON, WAKES, WaitGraph, graph_of
from .reasons import Blocked, NoneRuns, Others, Reason

__all__ = [
    "GOES_ON",
    "WAKES",
    "Agent",
    "Blocked",
    "Chain",
    "Cycle",
    "Edge",
    "NoneRuns",
    "Others",
    "Place",
    "Places",
    "Reason",
    "WaitGraph",
    "graph_of",
    "program",
]
