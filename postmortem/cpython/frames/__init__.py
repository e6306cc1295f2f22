"""Python stacks, and what a frame calls, raises and names.

Read ``frame`` and ``chains`` first; ``heapframes`` reads frames up to 3.10.
"""
