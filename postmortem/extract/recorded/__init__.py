"""Reading of the files that the capture wrote beside the cores.

- ``documents``, ``shapes``: JSON, checked
- ``window``: the observation window and py-spy's samples
- ``raw``: all facts of one process
"""
