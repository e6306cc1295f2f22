"""The child process that answers the pm-* commands of an interactive gdb, in postmortem's own interpreter.

gdb's scripts (``gdb/`` of the checkout) start it, describe what gdb has open, and print its answers. It reads and
changes nothing.

- ``child``: the loop
- ``subject``: what gdb has open, extracted as for a report
- ``inferior``: a live process, whose memory gdb reads
- ``answers``, ``threads``, ``locks``, ``show``: output of the commands
- ``wire``: the protocol
"""
