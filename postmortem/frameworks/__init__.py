"""Event loops, executors and pools of well-known libraries, read out of memory.

- ``asyncio``: loops, tasks, futures, primitives.
- ``otherloops``: trio, gevent, Twisted, eventlet.
- ``executors``: thread pools of concurrent.futures.
- ``processpools``: pools of processes.
- ``leases``: objects borrowed from a pool.
"""
