"""Cores and raw facts → Evidence. Nothing is judged here, nothing of the target is executed."""

from __future__ import annotations

from .bundles import from_bundle
from .cores import from_core

__all__ = ["from_bundle", "from_core"]
