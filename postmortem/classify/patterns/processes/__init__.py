"""Processes that wait for processes, and processes that something outside holds."""
