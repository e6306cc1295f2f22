"""Fields and types of a bundle's JSON files.

Writers:

- ``process.json``: capture.procfs.facts
- ``window.json``: capture.observe.window, capture.observe.probes
- ``net.json``: capture.procfs.connections
- ``machine.json``: capture.observe.window, capture.procfs.cgroups
- ``sharers.json``: capture.procfs.sharers
- ``stop.json``: capture.freeze.cores
"""

from __future__ import annotations

from typing import Any, Dict

from ...foreign.held import Folder
from .shapes import (
    MISSING,
    MOST_PID,
    Shape,
    amount,
    digits,
    either,
    flag,
    listed,
    null_or,
    pid_of,
    read_json,
    record,
    row,
    table,
    text,
    whole,
)

#: Threads of one process; the window of a larger one is ignored. The largest one measured had 5,000.
MOST_THREADS = 1 << 16
_FD = whole(0, (1 << 31) - 1)
_PID = whole(1, MOST_PID - 1)
_NUMBER = whole(-(1 << 31), (1 << 32) - 1)
_WORD = whole(0, (1 << 64) - 1)
_TEXTS = table(text)
_COUNTS = table(whole())
_IDS = listed(whole(0, (1 << 32) - 2), 1 << 17)


def _is_fd(name: str) -> bool:
    return digits(name, MOST_PID) is not None


def _rights(value: Any) -> Any:
    """Return the rights, or None for invalid ones.

    Without the field, files of the process are read with our own rights; with an invalid one (None) they are not.
    """
    found = _IDS(value)
    return None if found is MISSING else found


PROCESS = record(
    pid=_PID, ppid=whole(0, MOST_PID - 1), argv=listed(text), exe=text, cwd=text, comm=text, state=text, pgid=_NUMBER,
    sid=_NUMBER, cgroup=listed(text), start_ticks=whole(), age_s=amount, cpus_allowed=either(text, whole(0, 1 << 20)),
    tracer_pid=_NUMBER, tracer_name=text, uid=whole(0, (1 << 32) - 1), ns_pids=listed(_PID, 64), terminal=_NUMBER,
    foreground=_NUMBER, signals_caught=_WORD, signals_ignored=_WORD, fds=table(text, _is_fd),
    threads=table(record(comm=text, own_tid=_PID), pid_of, MOST_THREADS), maps=listed(text), root=whole(1, 9999),
    stopped_by=whole(1, 64), exit_code=whole(0, (1 << 16) - 1),
    rights=_rights, reads_all=flag,
)  # fmt: skip

_CALL = record(nr=whole(), name=text, args=row(*[_WORD] * 6), sp=_WORD, pc=_WORD)
_THREAD = record(
    name=text, state=text, cpu_s=amount, run_delay_s=amount, voluntary_switches=whole(), involuntary_switches=whole(),
    minor_faults=whole(), major_faults=whole(), io_delay_s=amount, read_calls=whole(), write_calls=whole(), states=_COUNTS,
    syscalls=_COUNTS, last_syscall=_CALL, wchan=_COUNTS,
    course=listed(row(amount, null_or(text), null_or(text), null_or(_WORD)), 1 << 16),
)  # fmt: skip
_ADDRESSES = listed(_WORD, 1 << 16)
PROBES = record(
    gil=record(switches=_WORD, seconds=amount, switch_interval_s=amount, holders=listed(row(amount, _WORD), 1 << 16)),
    collector=record(seconds=amount, looks=whole(0), busy=whole(0), counts=listed(whole(0), 16)),
    queues=record(seconds=amount, items=table(listed(whole(0), 16))),
    rounds=table(record(
        function=text, file=text, first_line=whole(0, 1 << 31), looks=whole(0, 1 << 31), turns=whole(0, 1 << 31),
        same=null_or(flag), changed=listed(text, 64),
    )),
    exceptions=record(addresses=_ADDRESSES, tracebacks=whole(0)),
    calls=table(listed(whole(-(1 << 63), (1 << 64) - 1), 64)),
    turns=record(now=amount, seconds=amount, loops=table(row(amount, either(_WORD, amount)))),
    waits=table(null_or(_WORD)),
)  # fmt: skip
WINDOW = record(
    began=amount, seconds=amount, cpu_s=amount, minor_faults=whole(), major_faults=whole(),
    threads=table(_THREAD, pid_of, MOST_THREADS),
    io=_COUNTS, rss_growth=whole(), probes=PROBES,
)  # fmt: skip

STOP = record(realtime=amount, monotonic=amount, boot_id=text)

_ENDS = listed(row(_PID, _FD, text))
_LOCK = {
    "kind": text, "mode": text, "pid": whole(-1, MOST_PID - 1), "device": row(whole(0), whole(0)), "inode": whole(0),
    "first": whole(0), "last": whole(0), "alive": flag,
}  # fmt: skip
_SOCKET = record(
    proto=text, local=text, remote=text, state=text, path=text, rx_queue=whole(0), tx_queue=whole(0), peer=whole(0)
)
_SPECIAL = record(
    kind=text, count=_WORD, id=whole(0), watches=listed(row(_FD, _WORD)), pid=whole(-1, MOST_PID - 1), signals=_WORD,
    index=whole(0), ticks=_WORD, armed=flag,
)  # fmt: skip
_FILL = record(bytes=whole(0), capacity=whole(0), alone=flag, side=text)
NET = record(
    sockets=table(_SOCKET), listening_ports=listed(whole(0, 65535)), pipes=table(_ENDS), fill=table(_FILL),
    fill_after=table(_FILL), timeouts=table(row(amount, amount)), known=listed(_PID),
    special=table(table(_SPECIAL, _is_fd), pid_of),
    inherited=listed(text), in_flight=listed(text), locks=listed(record(**_LOCK, waits=listed(record(**_LOCK)))),
    locked_files=table(record(device=row(whole(0), whole(0)), inode=whole(0), through=listed(row(_PID, _FD, text)))),
    beyond=record(
        ends=table(_ENDS), looked_at=whole(0), not_looked_at=whole(0), all_visible=flag,
        unread=record(older=whole(0), younger=whole(0), unrelated=whole(0)),
        processes=table(record(name=text, title=text, ppid=whole(0), start_ticks=whole(0), call=text, file=text), pid_of),
    ),
)  # fmt: skip

_BOTH_ENDS = record(before=_TEXTS, after=_TEXTS)
MACHINE = record(
    seconds=amount, machine=_BOTH_ENDS, cgroups=table(table(_BOTH_ENDS)), processes=table(table(text), pid_of)
)
SHARERS = record(beyond=table(listed(_PID)), unread=whole(0), not_looked_at=whole(0))


def read(folder: Folder, name: str, shape: Shape) -> Dict[str, Any]:
    """Return one of these files without invalid parts; empty if missing or damaged."""
    found = shape(read_json(folder, name))
    return found if isinstance(found, dict) else {}
