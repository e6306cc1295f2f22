"""The HTML report: one self-contained file that works offline and loads nothing.

The verdict, the lines to change and their evidence are written as HTML here. Explorable parts (the wait-for graph,
stacks, the timeline) are embedded as JSON, which the scripts of ``postmortem/report/assets`` draw.
"""

from __future__ import annotations
