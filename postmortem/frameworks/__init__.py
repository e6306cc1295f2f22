"""Event loops, executors and pools of well-known libraries, read out of memory.

- ``asyncio``: loops, tasks, futures, primitives.
- ``greenlet``: greenlets, and the hubs of gevent and eventlet.
- ``trio``: runners, tasks and what these wait for.
- ``channels``: what trio's memory channels and anyio's memory object streams have in common.
- ``otherloops``: Twisted; gevent and eventlet where their greenlets could not be read.
- ``executors``: thread pools of concurrent.futures.
- ``processpools``: pools of processes.
- ``leases``: objects borrowed from a pool.
"""
