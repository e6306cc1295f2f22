"""Evidence from cores and raw facts. Nothing is judged here, and no code of the target is run.

- ``assemble``: a core, the processes of a tree, a whole bundle
- ``recorded``: what the capture wrote beside the cores
- ``process``: one process: its threads and its interpreter
- ``waits``: what threads and tasks wait for
- ``ownership``: holders, and agents that could end a wait
- ``cross_process``: relations between processes
- ``sourcecode``: facts from the program's sources
"""
