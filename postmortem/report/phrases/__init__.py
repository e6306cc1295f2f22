"""Phrases that formats share, each defined once: ``labels`` (threads, waits), ``roots``, ``roles``, ``chains``, ``culprits``."""
