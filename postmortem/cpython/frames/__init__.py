"""Python stacks: ``frame`` and ``chains`` first (``heapframes`` up to 3.10); what a frame calls, raises and names."""
