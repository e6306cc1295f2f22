"""A root as the report shows it."""

from __future__ import annotations

from ...findings import told
from ..facts.view import View
from .roots import Root, frame_of


def root_told(view: View, root: Root) -> told.Root:
    """Return a root with its place in the program."""
    agent, frame = root.agent, frame_of(view, root.agent)
    task = view.graph.places.task(agent)
    return told.Root(
        state=root.state,
        kind=root.kind,
        pid=agent.pid,
        tid=agent.tid,
        task=(task.name or task.id) if task is not None else None,
        file=frame.file if frame is not None else None,
        line=frame.line if frame is not None else None,
        function=frame.function if frame is not None else None,
        others=root.others,
    )
