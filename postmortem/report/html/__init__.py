"""The HTML report: one file that explains itself, works offline and asks no other place for anything.

The verdict, the lines to change and what they rest on are written as HTML here. What can be explored (who waits for whom,
stacks, time) goes along as JSON, which the scripts of ``postmortem/report/assets`` draw.
"""

from __future__ import annotations
