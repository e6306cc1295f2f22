"""Phrases shared by several formats, each defined once: ``labels`` (threads, waits), ``roles``, ``chains``, ``culprits``."""
