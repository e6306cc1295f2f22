"""asyncio: ``tasks`` and ``futures`` first, then ``eventloops``, ``awaiting`` (what a suspended task waits for) and
``primitives`` (its locks and queues)."""
