"""Code that hangs, and its correction, by pattern: shown on the pattern's page.

A pattern whose remedy is not a change of a few lines has none.
"""

from __future__ import annotations

from typing import Dict

from . import computing, loops, processes, threads
from .snippet import Snippet

__all__ = ["SNIPPETS", "WITHOUT", "Snippet"]

SNIPPETS: Dict[str, Snippet] = {**threads.SNIPPETS, **loops.SNIPPETS, **processes.SNIPPETS, **computing.SNIPPETS}

#: Patterns without a snippet, and the reason.
WITHOUT: Dict[str, str] = {
    "disk-wait": "the disk or the network share is to be mended",
    "fatal-python-error": "a bug of an extension module, whose code is in C",
    "frozen": "whoever froze the control group is to thaw it",
    "heap-corruption": "a bug of native code",
    "killed": "what ended the process lies outside of it",
    "memory-pressure": "more memory, or less in it: no few lines",
    "native-crash": "a bug of native code, or an upgrade",
    "native-lock-gil-inversion": "the extension's code in C is to give the interpreter lock back before it locks",
    "stopped": "a signal that was sent is to be followed by SIGCONT",
    "throttled": "the quota is the control group's",
}
