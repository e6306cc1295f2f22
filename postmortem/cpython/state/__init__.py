"""Interpreters, their threads and the GIL, and what an interpreter records about itself.

``interpreter`` is the entry to everything else. ``signals``: signal handlers; ``typenames``: lost names of types;
``values``: texts of values; ``fatalerrors``: messages before an abort; ``volatile``: what changes while the process
runs.
"""
