"""What the capture wrote beside the cores, read back: ``documents`` and ``shapes`` (JSON made to fit), ``window``, ``raw``."""
