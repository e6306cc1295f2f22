"""Objects of the target: ``builtins`` first; ``attributes``, ``code`` and ``linetable`` build on it."""
