"""Evaluation of code that can still run, read out of memory without running it.

``opcodes`` (numbers by release) → ``instructions`` (a code object's, and those that can follow one) → ``values`` (what an
expression may be: objects in memory, new instances, unknown ones by their last name), ``functions`` (parameters, closure)
and ``library`` (what evaluations share, and what they do not follow) → ``store`` (what the code stores), ``lookup`` (loading
an attribute), ``incalls`` (calls in C) and ``machine`` (calls in Python), each built on the one before → ``run`` (one code
object's instructions, over a ``stack``).
"""
