"""Holders of locks, and agents that could still end a wait.

ownership      the type that all holders have
threadholders  holders of locks; with ``acquires`` those that only sources tell
taskholders    holders of asyncio's primitives
wakers         agents that could end what only code can end
"""
