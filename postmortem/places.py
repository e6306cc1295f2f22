"""Locations of our files: beside the package in a checkout, inside it in a wheel; caches under XDG."""

from __future__ import annotations

import os
from pathlib import Path

from .foreign.held import own

_PACKAGE = Path(__file__).resolve().parent


def shipped(name: str) -> Path:
    """Return a top-level folder (`gdb`, `corpora`) of the checkout, or its copy in the wheel.

    The wheel's copy comes first: an installed package may have any folder beside it.
    """
    inside = _PACKAGE / "_shipped" / name
    return inside if inside.exists() else _PACKAGE.parent / name


def cache(inside: str = "") -> Path:
    """Return the user's cache folder for gdb's index and the demo's environments, or the folder ``inside`` it.

    Made with mode 0700. Raises OSError; Unsafe where another user can change it, such as a HOME that is theirs under
    ``sudo``.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "postmortem"
    own(str(folder)).close()
    if inside:
        folder = folder / inside
        own(str(folder)).close()
    return folder
