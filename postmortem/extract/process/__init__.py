"""The reading of one process.

- ``context``, ``threadtable``: the input of every pass
- ``reading``, ``process``: the passes in order: tasks, threads and their waits, holders
- ``waiting``, ``threads``: each thread's wait and evidence
- ``summary``: results that need native stacks, and the process as evidence
"""
