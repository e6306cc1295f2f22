"""Find the interpreter in a process, and the layout that goes with its version.

Read ``discovery``, then ``debugoffsets`` (3.13 and later say it themselves), ``releases`` (rows for those before) and ``layouts``
(the fields).
"""
