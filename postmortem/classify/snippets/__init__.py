"""Code as it hangs and as it does not, by pattern: what a page shows beside its words. A pattern whose remedy is no change
of a few lines has none."""

from __future__ import annotations

from typing import Dict

from . import computing, loops, processes, threads
from .snippet import Snippet

__all__ = ["SNIPPETS", "Snippet"]

SNIPPETS: Dict[str, Snippet] = {**threads.SNIPPETS, **loops.SNIPPETS, **processes.SNIPPETS, **computing.SNIPPETS}
