"""Captures that are killed at any moment, and targets that are: who remains is none the worse for it."""
