"""The effect of control groups and of the machine on the processes over the window. Sizes are in bytes."""

from __future__ import annotations

from typing import Dict, Optional

import msgspec


class ControlGroup(msgspec.Struct, frozen=True):
    """Limits and pressure of a process's control group and its ancestors over the window. Sizes are in bytes.

    ``stalls`` (PSI): key "cpu some", "io full", …; the share of the window in which tasks were stalled on that resource.
    """

    path: str
    frozen: Optional[bool] = None
    cpu_quota: Optional[float] = None  # CPUs allowed by the tightest quota; None: unknown, or no quota
    throttled: Optional[float] = None  # share of the quota's periods in which it was exhausted
    throttled_s: Optional[float] = None  # summed over the CPUs
    memory_limit: Optional[int] = None  # of the limit closest to being reached; None: unknown, or no limit
    memory_used: Optional[int] = None
    oom_kills: Optional[int] = None
    stalls: Dict[str, float] = {}
    refaulted: Optional[int] = None  # pages read again shortly after they had been evicted


class Machine(msgspec.Struct, frozen=True):
    """The machine over the window: load, memory, pressure.

    Sizes are in bytes; ``load`` is the one-minute average at the end of the window; ``stalls`` as in ``ControlGroup``.
    """

    load: Optional[float] = None
    memory: Optional[int] = None
    available: Optional[int] = None
    swap_free: Optional[int] = None
    swapped_in: Optional[int] = None
    swapped_out: Optional[int] = None
    oom_kills: Optional[int] = None
    steal: Optional[float] = None  # share of CPU time that the hypervisor gave to other guests
    stalls: Dict[str, float] = {}
    refaulted: Optional[int] = None
