"""Whole numbers in foreign texts."""

from __future__ import annotations

from typing import Optional

import pytest

from postmortem.foreign.numbers import decimal, is_decimal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("007", 7),
        ("18446744073709551615", (1 << 64) - 1),
        ("18446744073709551616", None),
        ("²", None),
        ("٣", None),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("1_0", None),
        (" 1", None),
        ("1\n", None),
        ("1" * 5000, None),
    ],
)
def test_only_ascii_digits_are_a_number(text: str, expected: Optional[int]) -> None:
    """Neither superscripts nor other scripts' digits nor what `int` takes beside them; nothing beyond 64 bits."""
    assert decimal(text) == expected


def test_what_is_decimal_becomes_a_number() -> None:
    """`int` takes whatever passes, in bounded time."""
    passing = [chr(code) for code in range(0x110000) if is_decimal(chr(code))]
    assert passing == list("0123456789")
    assert not is_decimal("9" * 21)
    assert int("9" * 20) > decimal("8" * 3, 888)  # type: ignore[operator]


def test_a_bound_is_a_bound() -> None:
    """A pid has seven digits."""
    assert decimal("4194303", 4194303) == 4194303
    assert decimal("4194304", 4194303) is None
