"""Twisted: suspended ``inlineCallbacks`` generators and coroutines, and the Deferreds that they wait for.

``primitives`` reads locks, semaphores and queues; ``deferreds`` finds all Deferreds in the collector's lists, and from the
callbacks of each who waits for it. The reactor itself is read in ``otherloops``.

Every layout here is one of Python attributes, found by name: there are no offsets.
"""
