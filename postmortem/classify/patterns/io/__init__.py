"""Waits for what comes through a descriptor, or by the clock: networks, pipes, files, names, terminals, sleeps."""
