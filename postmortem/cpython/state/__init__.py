"""``interpreter``: interpreters, their threads and the GIL, the way into everything else; and what the interpreter says of
signals, types and its own end."""
