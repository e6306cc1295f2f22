"""Damage to the bytes of a file, whatever they mean."""

from __future__ import annotations

import random
from typing import Tuple

_EXTREMES = (
    b"",
    b"\0",
    b"\xff",
    b"\xff" * 8,
    b"\0" * 8,
    b"\x7f\xff\xff\xff",
    b"\n",
    b"\r\n",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
)


def damaged(data: bytes, rng: random.Random) -> Tuple[bytes, str]:
    """(damaged, what was done)."""
    way = rng.randrange(9)
    at = rng.randrange(len(data) + 1)
    if way <= 1:
        return data[:at], f"ends at {at}"
    if way <= 3:
        count = rng.choice((1, 3, 30))
        changed = bytearray(data)
        for _ in range(count if data else 0):
            changed[rng.randrange(len(data))] = rng.getrandbits(8)
        return bytes(changed), f"{count} bytes"
    if way == 4:
        piece = rng.choice(_EXTREMES) * rng.choice((1, 2, 1000))
        return data[:at] + piece + data[at:], f"{len(piece)} bytes put in at {at}"
    if way == 5:
        end = min(len(data), at + rng.choice((1, 4, 100, 4096)))
        return data[:at] + data[end:], f"{end - at} bytes taken out at {at}"
    if way == 6:
        end = min(len(data), at + rng.choice((4, 100, 4096)))
        times = rng.choice((2, 1000))
        return data[:at] + data[at:end] * times + data[end:], f"{end - at} bytes {times} times at {at}"
    if way == 7:
        return rng.choice(
            (b"", b"\0" * 100, b" " * (1 << 20), data * 3, b"null", b"[]", b"{}", b'"\xff"')
        ), "another content"
    encoding = rng.choice(("utf-16", "utf-32"))
    return data.decode("utf-8", "replace").encode(encoding), encoding
