"""Tornado on asyncio: generators that its ``gen.coroutine`` runs, and futures by which its locks and queues wake waiters."""
