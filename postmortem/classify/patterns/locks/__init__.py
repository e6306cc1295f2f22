"""Threads that wait for each other: locks, conditions, semaphores, thread pools, imports, joins at shutdown."""
