"""Formats for programs: JSON, SARIF, JUnit, GitHub's commands, speedscope, collapsed stacks."""
