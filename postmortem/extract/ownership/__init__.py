"""Holders of locks, and agents that could still end a wait.

- ``ownership``: the type that all holders share
- ``threadholders``: locks that threads hold; ``acquires`` infers from source what memory does not record
- ``taskholders``: asyncio primitives that tasks hold
- ``wakers``: agents that could still signal what is waited for
"""
