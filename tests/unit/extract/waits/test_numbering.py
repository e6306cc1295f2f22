"""Numbers that tell resources with equal descriptions apart."""

from __future__ import annotations

from postmortem.evidence import Resource
from postmortem.extract.waits.numbering import numbered


def test_what_is_called_alike_is_numbered() -> None:
    """Except futures: thousands come from one line."""
    names = ("asyncio.Lock a", "asyncio.Lock a", "asyncio.Lock b")
    found = numbered([Resource(str(n), "async-lock", name) for n, name in enumerate(names)])
    assert [r.description for r in found] == ["asyncio.Lock a #1", "asyncio.Lock a #2", "asyncio.Lock b"]
    futures = [Resource(str(n), "async-future", "Future x") for n in range(2)]
    assert numbered(futures) == futures
