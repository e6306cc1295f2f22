"""postmortem: says what a hung or crashed Python program waits for, and which line to change."""

__version__ = "0.1.0"
