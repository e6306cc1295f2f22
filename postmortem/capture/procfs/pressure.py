"""How the machine fares at both ends of the window: load, memory, swap, stalls. The files' own words, not judged.

Sources: proc(5); Documentation/accounting/psi.rst. In a container /proc/pressure and the rest speak of the whole machine,
except where something like lxcfs stands in for them.
"""

from __future__ import annotations

from typing import Dict

from . import parsers
from .cgroups import read_texts

_WHOLE = ("loadavg", "pressure/cpu", "pressure/memory", "pressure/io")
#: Of long files, the rows that are used.
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
    """File → text, for what can be read."""
    found = read_texts(proc, _WHOLE)
    for name, wanted in _ROWS.items():
        try:
            rows = parsers.text(parsers.read(f"{proc}/{name}")).splitlines()
        except OSError:
            continue
        found[name] = "\n".join(row for row in rows if row.split(None, 1)[:1] and row.split(None, 1)[0] in wanted)
    return found
