"""asyncio: loops, tasks, futures and primitives.

Read ``tasks`` and ``futures`` first, then ``eventloops``, ``awaiting`` (what a suspended task waits for) and
``primitives`` (locks, queues and their kin).
"""
