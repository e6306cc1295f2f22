"""trio: runners, tasks with their nurseries and cancel scopes, and what each task waits for.

Read ``runners`` first: a runner is trio's event loop, found on the stack of its thread. ``awaiting`` tells a task's wait
from the frames of trio's own functions; ``primitives`` reads locks, limiters, events, conditions and channels, ``scopes``
the deadlines that end waits.

Every layout here is one of Python attributes or slots, found by name: there are no offsets.
"""
