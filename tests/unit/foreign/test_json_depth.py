"""How deep foreign JSON may be nested."""

from __future__ import annotations

import pytest

from postmortem.foreign import strictjson


@pytest.mark.parametrize("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")])
def test_depth_is_bounded_below_what_recursion_bears(opening: bytes, closing: bytes) -> None:
    """What passes may be walked through recursively; what is deeper is refused, however deep."""
    for depth in (strictjson.MOST_DEPTH + 1, 900, 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            strictjson.loads(opening * depth + b"1" + closing * depth)
    depth = strictjson.MOST_DEPTH
    assert strictjson.loads(opening * depth + b"1" + closing * depth)
    assert strictjson.loads(b"7") == 7
