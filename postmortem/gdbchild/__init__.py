"""The child of a person's gdb that answers its pm-* commands: the one engine, in postmortem's own interpreter.

gdb's scripts (``gdb/`` of the checkout) start it, tell it what gdb has open, and print what it answers; it reads, and changes
nothing. In this order: ``child`` (the loop), ``subject`` (what gdb has open, extracted as for a report), ``inferior`` (a live
process, whose memory gdb reads for it), ``answers``, ``threads``, ``locks`` and ``show`` (what the commands say), ``wire``.
"""
