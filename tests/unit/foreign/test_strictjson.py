"""JSON that somebody else wrote."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.foreign.strictjson import loads


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": [1, -2.5, true, null, "x"]}', {"a": [1, -2.5, True, None, "x"]}),
        (b"18446744073709551615", (1 << 64) - 1),
        (b"-9223372036854775808", -(1 << 63)),
        (b"0.1e300", 1e299),
        ('"\\udc80 é"'.encode(), "\udc80 é"),  # a file's name that is no UTF-8
    ],
)
def test_what_the_standard_has_is_read(text: bytes, value: Any) -> None:
    """Every value whose numbers fit in 64 bits."""
    assert loads(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"NaN",
        b"-Infinity",
        b"[1e400]",
        b"18446744073709551616",
        b"-9223372036854775809",
        b"999999999999999999999",
        b"1" + b"0" * 1_000_000,
        "²".encode(),
        b"\xff",
        b"",
        b"[1] [2]",
        b"[" * 200_000,
        b'{"a":' * 200_000,
    ],
    ids=lambda text: repr(text[:24]),
)
def test_everything_else_is_a_value_error(text: bytes) -> None:
    """Numbers that no reader could hold, bytes that are no UTF-8, endless nesting: one error, at once."""
    with pytest.raises(ValueError):
        loads(text)
