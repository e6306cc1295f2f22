"""Event loops, executors and pools of well-known libraries, read out of memory: asyncio, those beside it (``otherloops``),
thread pools (``executors``), pools of processes (``processpools``), and what programs borrow from pools (``leases``)."""
