"""Words that several formats share, each said once: ``labels`` (threads, waits), ``roles``, ``chains``, ``culprits``."""
