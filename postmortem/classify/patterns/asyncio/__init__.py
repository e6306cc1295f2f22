"""Event loops that spin, starve, are blocked or wait for themselves; tasks that nothing can wake."""
