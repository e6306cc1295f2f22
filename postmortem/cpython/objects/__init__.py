"""Objects of the target.

Read ``builtins`` first; ``attributes``, ``code`` and ``linetable`` build on it.
"""
