"""Processes that wait for processes, and processes held from outside."""
