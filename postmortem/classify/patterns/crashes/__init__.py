"""Crashes: signals, damaged heaps, fatal errors of the interpreter, stack overflow."""
