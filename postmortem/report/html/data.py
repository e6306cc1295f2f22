"""The data that a page's scripts draw, as one JSON value without spaces."""

from __future__ import annotations

import json
from typing import Dict, List, Sequence, Tuple

from ...evidence import Evidence
from ...findings import Diagnosis
from ...waitgraph import graph_of
from ..phrases import labels
from . import picture, windows
from .agents import Agents, causes
from .markup import Markup
from .tables import Tables


def collected(evidence: Evidence, diagnosis: Diagnosis) -> Dict[str, object]:
    """Return the data as plain lists and dicts.

    Numbers of strings, frames, stacks and agents are positions in the lists of that name.
    """
    graph, tables = graph_of(evidence), Tables(evidence)
    agents = Agents(evidence, diagnosis, graph, tables)
    shown = picture.choose(graph, evidence, diagnosis, agents.cited)
    number = agents.number
    culprits = {tables.place(c.file, c.line): None for f in causes(diagnosis) for c in f.culprits}
    found: Dict[str, object] = {
        "agents": agents.rows,
        "shapes": agents.shapes,
        "leftOut": agents.left_out,
        "processes": agents.processes,
        "shown": [number[a] for a in shown.agents if a in number],
        "folds": [_runs([number[a] for a in fold if a in number]) for fold in shown.folds],
        "alike": [_runs([number[a] for a in group if a in number]) for group in agents.alike],
        "circles": [_runs([number[a] for a in circle if a in number]) for circle in shown.circles],
        "culprits": _pairs(culprits),
        "samples": windows.samples(evidence, number, tables),
        "timelines": windows.timelines(evidence, number, tables),
        "window": windows.length(evidence),
        "terms": labels.TERMS,
    }
    return {**found, "frames": tables.frames, "stacks": tables.stacks, "lines": tables.lines, "strings": tables.strings}


def _runs(numbers: Sequence[int]) -> List[object]:
    """Return the numbers with consecutive ones merged into [first, last]."""
    runs: List[List[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return [run[0] if run[0] == run[1] else run for run in runs]


def _pairs(places: Dict[Tuple[int, int], None]) -> object:
    return [list(place) for place in places]


def embedded(value: Dict[str, object]) -> Markup:
    """Encode a value as JSON for a <script> element.

    ``<``, ``>`` and ``&`` are escaped, since the first ``</script`` in the text would end the element.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)
