"""Cores and raw facts → Evidence. Nothing is judged here, nothing of the target is executed."""
