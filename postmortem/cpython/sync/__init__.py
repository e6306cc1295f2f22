"""Synchronisation: ``locks`` (who waits, who holds), ``primitives`` (what a blocked thread waits for), ``semaphores``
(shared with other processes), ``parking`` and ``freethreading`` (small locks of 3.13 and later)."""
