"""The interpreter in a process, and the layout of its version.

Read ``discovery``, then ``debugoffsets`` (published offsets, 3.13 and later), ``releases`` (offsets of each release)
and ``layouts`` (the fields).
"""
