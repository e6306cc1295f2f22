"""Evidence from bundles and cores.

- ``cores``: a single core
- ``processes``: the processes of a tree
- ``bundles``: a whole capture
"""
