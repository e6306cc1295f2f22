"""Load, memory, swap and stalls of the machine, as the kernel's files show them.

In a container /proc/pressure and the others describe the whole machine, unless something like lxcfs replaces them.
Sources: proc(5); Documentation/accounting/psi.rst.
"""

from __future__ import annotations

from typing import Dict

from . import parsers
from .cgroups import read_texts

_WHOLE = ("loadavg", "pressure/cpu", "pressure/memory", "pressure/io")
#: Rows kept of long files.
_ROWS = {
    "meminfo": ("MemTotal:", "MemAvailable:", "SwapFree:"),
    "vmstat": (
        "pswpin",
        "pswpout",
        "oom_kill",
        "workingset_refault",
        "workingset_refault_anon",
        "workingset_refault_file",
    ),
    "stat": ("cpu",),
}


def machine_facts(proc: str = "/proc") -> Dict[str, str]:
    """Return file → content, for the readable ones."""
    found = read_texts(proc, _WHOLE)
    for name, wanted in _ROWS.items():
        try:
            rows = parsers.text(parsers.read(f"{proc}/{name}")).splitlines()
        except OSError:
            continue
        found[name] = "\n".join(row for row in rows if row.split(None, 1)[:1] and row.split(None, 1)[0] in wanted)
    return found
