"""The interpreters that the tests run on: which ones, where they are, and how those that are missing are had.

``python -m tests.interpreters`` (``make interpreters``) finds or sets up each one; ``tests/support/interpreters.py`` makes
parameters of them. Standard library alone: this runs before there is an environment.
"""
