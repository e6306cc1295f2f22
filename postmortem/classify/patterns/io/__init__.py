"""Waits for input through a descriptor, or for a clock: networks, pipes, files, name resolution, terminals, sleeps."""
