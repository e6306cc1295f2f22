"""What the control groups and the machine did to the processes over the window. Bytes."""

from __future__ import annotations

from typing import Dict, Optional

import msgspec


class ControlGroup(msgspec.Struct, frozen=True):
    """What the control group of a process, and those above it, did to it over the window. Bytes. ``stalls`` (PSI): share
    of the window in which "cpu some", "io full", … of its tasks stood still for want of it."""

    path: str
    frozen: Optional[bool] = None
    cpu_quota: Optional[float] = None  # CPUs that the tightest quota allows; None: unknown, or no quota
    throttled: Optional[float] = None  # share of the quota's periods in which it was used up early
    throttled_s: Optional[float] = None  # summed over the CPUs
    memory_limit: Optional[int] = None  # the one that is nearest to be reached; None: unknown, or no limit
    memory_used: Optional[int] = None
    oom_kills: Optional[int] = None
    stalls: Dict[str, float] = {}
    refaulted: Optional[int] = None  # read again though it had been in memory a moment ago, and was pushed out


class Machine(msgspec.Struct, frozen=True):
    """The machine over the window. Bytes; ``load`` is the one-minute average at its end; ``stalls`` as above."""

    load: Optional[float] = None
    memory: Optional[int] = None
    available: Optional[int] = None
    swap_free: Optional[int] = None
    swapped_in: Optional[int] = None
    swapped_out: Optional[int] = None
    oom_kills: Optional[int] = None
    steal: Optional[float] = None  # share of the CPUs' time that the hypervisor gave to others
    stalls: Dict[str, float] = {}
    refaulted: Optional[int] = None
