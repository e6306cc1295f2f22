"""The command under capture, from its start to postmortem's exit status.

Read in this order:
- ``command``: start it and wait for it
- ``triggers``: reasons to begin a capture
- ``lifecycle``: captures, the end of the tree, diagnoses, in this order
- ``conclusion``: make and fill the bundle, end the tree
- ``background``: diagnoses while the command continues
"""
