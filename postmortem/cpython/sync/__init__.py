"""Synchronisation: what blocked threads wait for, and holders.

- ``locks``: awaited and held locks.
- ``primitives``: conditions, events, queues, futures and their kin.
- ``semaphores``: semaphores shared with other processes.
- ``parking``, ``freethreading``: one-byte locks of 3.13 and later.
- ``buffered``: locks of buffered files.
- ``polls``: waits by polling.
"""
