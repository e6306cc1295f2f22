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
    "disk-wait": "repair the disk or the network share: no code has to change",
    "fatal-python-error": "a bug in an extension module, which is written in C",
    "frozen": "thaw the control group from outside: no code has to change",
    "heap-corruption": "a bug in native code",
    "killed": "the cause lies outside the process",
    "memory-pressure": "give it more memory, or keep less in it: this is no change of a few lines",
    "native-abort": "what has to change depends on what the library objected to",
    "native-crash": "a bug in native code: fix or upgrade it",
    "native-exit-wait": "each library has its own way to be closed before the program ends",
    "native-lock-gil-inversion": "the extension's C code has to release the GIL before it acquires its lock",
    "stopped": "the code that sends the signal has to send SIGCONT afterwards",
    "throttled": "the quota is the control group's",
}
