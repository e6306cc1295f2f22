"""The observation window: what the processes do over time, without being stopped.

Read in this order:
- ``window``: counters, and states at a dozen looks
- ``timelines``: the course of each thread
- ``probes``: counters and structures of the interpreter itself
- ``pyspy``, ``sampling``: Python stacks
"""
