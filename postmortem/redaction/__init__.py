"""Redaction of secrets in command lines, source lines and texts, before evidence is shown or written.

``raw/`` of a bundle keeps what was read. Everything made of it passes ``evidence.discreet``, old evidence included.
"""
