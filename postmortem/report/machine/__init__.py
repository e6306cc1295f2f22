"""Formats that programs read: JSON, SARIF, JUnit, GitHub's commands, speedscope, collapsed stacks."""
