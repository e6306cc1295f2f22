"""Time limits of tests: from the marker, else the command line, else the ini file."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import pytest

from ..foreign.numbers import is_decimal
from . import MARKER

SCOPES = ("phase", "call", "item")
#: The import of a heavy module is no hang, nor is the end of a pool; the ini file may set less.
LEAST_COLLECTION_S, LEAST_EXIT_S = 30.0, 5.0
#: pytest-xdist kills a worker that has not ended 10 s after the request.
WORKER_EXIT_S = 3.0


class Limit:
    """A time limit in seconds, 0 for none.

    ``scope``: one of SCOPES. ``phases``: the limits of setup, call and teardown; with scope ``item`` they share one clock.
    """

    __slots__ = ("phases", "scope", "seconds")

    def __init__(self, seconds: float, scope: str) -> None:
        self.seconds, self.scope = seconds, scope
        outside = 0.0 if scope == "call" else seconds
        self.phases: Tuple[float, float, float] = (outside, seconds, outside)


def configured(config: Any) -> Limit:
    """Return the configured limit; raise pytest.UsageError if it is invalid."""
    text = _given(config, "postmortem_timeout")
    seconds = _seconds(text, "--postmortem-timeout") if text else 0.0
    return Limit(seconds, _scope(_given(config, "postmortem_scope") or "phase", "postmortem_scope"))


def collection(config: Any, limit: Limit) -> float:
    """Return the limit of one module's collection, in seconds; raise pytest.UsageError if it is invalid."""
    text = config.getini("postmortem_collection_timeout")
    if text:
        return _seconds(text, "postmortem_collection_timeout")
    return max(limit.seconds, LEAST_COLLECTION_S) if limit.seconds else 0.0


def at_exit(config: Any, limit: Limit, worker: bool) -> float:
    """Return the limit of the interpreter's exit, in seconds; raise pytest.UsageError if it is invalid."""
    text = config.getini("postmortem_exit_timeout")
    seconds = max(limit.seconds, LEAST_EXIT_S) if limit.seconds else 0.0
    if text:
        seconds = _seconds(text, "postmortem_exit_timeout")
    return min(seconds, WORKER_EXIT_S) if worker else seconds


class Limits:
    """The limit of each item. Markers of modules and classes are read once."""

    def __init__(self, default: Limit) -> None:
        self._default = default
        self._known: Dict[Any, Limit] = {}

    def of(self, item: Any) -> Limit:
        """Return the limit of an item: its own marker's, else the nearest marker's of its parents, else the default."""
        own = _marked(item, self._default)
        return own if own is not None else self._of_node(item.parent)

    def _of_node(self, node: Any) -> Limit:
        """Return the limit of a module or class, cached."""
        if node is None:
            return self._default
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = _marked(node, self._default) or self._of_node(node.parent)
        return found


def _marked(node: Any, default: Limit) -> Optional[Limit]:
    """Return the limit of a node's own marker; None if it has none."""
    for mark in node.own_markers:
        if mark.name == MARKER:
            return _of_mark(mark, node.nodeid, default)
    return None


def _of_mark(mark: Any, where: str, default: Limit) -> Limit:
    """Return the limit of a marker; raise pytest.UsageError if it is invalid."""
    if len(mark.args) > 1 or set(mark.kwargs) - {"seconds", "scope"}:
        raise pytest.UsageError(f"{where}: {MARKER} takes seconds and scope, as in {MARKER}(5, scope='item')")
    given = mark.args[0] if mark.args else mark.kwargs.get("seconds")
    seconds = default.seconds if given is None else _seconds(str(given), f"{where}: {MARKER}")
    return Limit(seconds, _scope(mark.kwargs.get("scope") or default.scope, f"{where}: {MARKER}"))


def _seconds(text: str, where: str) -> float:
    if is_decimal(text):  # plain numbers, the most frequent form, need no parser
        return float(text)
    from ..capture.options import duration  # noqa: PLC0415

    try:
        return duration(text)
    except ValueError as exc:
        raise pytest.UsageError(f"{where} {text!r}: {exc}") from None


def _scope(word: str, where: str) -> str:
    if word not in SCOPES:
        raise pytest.UsageError(f"{where}: scope {word!r} is not one of {', '.join(SCOPES)}")
    return word


def _given(config: Any, name: str) -> Optional[str]:
    found: Optional[str] = config.getoption(name) or config.getini(name) or None
    return found
