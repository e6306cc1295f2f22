"""Waits of threads and tasks.

- ``threadwaits``: from system calls
- ``primitives``, ``locks``: from the interpreter
- ``nativelocks``: from the C library
- ``awaits``: of tasks
- ``endpoints``: for descriptors
"""
