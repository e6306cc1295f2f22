"""Wait chains in a text report and in Markdown."""

from __future__ import annotations

from typing import Optional

from ...evidence import Evidence
from ...findings import Finding
from ..phrases import chains, labels
from .page import Page


def show(page: Page, evidence: Evidence, finding: Optional[Finding]) -> None:
    """Print the wait chains; nothing if one sentence suffices, as for a single wait for something outside.

    Without a finding, only chains of agents that cannot move are printed.
    """
    found = chains.ways(evidence, finding)
    if found:
        page.heading("Who waits for whom")
    for number, way in enumerate(found):
        if number:
            page.blank()
        page.text(way.steps[0].text, 2)
        for step in way.steps[1:]:
            page.text(step.text, 4, first="→ ")
        if way.left_out:
            page.text(labels.more(way.left_out, "links"), 4)
