"""Who holds what, and who could still end a wait: ``holders`` and ``acquires`` for locks, ``asyncholders`` for tasks,
``wakers`` for whatever only code can end."""
