"""The object graph.

- ``referrers``: references to an object.
- ``owners``: the object around a place in memory; ``tables``, ``allocations``: its separate tables.
- ``reachability``: threads, tasks and code that can reach an object.
- ``variablesearch``: objects that variables lead to; ``queues`` among them.
- ``gclists``: all containers; ``keptexceptions``: exceptions kept alive with their frames.
"""
