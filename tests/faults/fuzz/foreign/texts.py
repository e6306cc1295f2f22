"""Damage to the fields of crash reports, problem directories and journals."""

from __future__ import annotations

import random
import re
from typing import List, Tuple

from .values import NUMBERS, TEXTS

_FIELD = re.compile(rb"^([A-Z_]{2,40})=(.*)$|^([A-Za-z]{2,30}): (.*)$", re.M)


def value(rng: random.Random) -> bytes:
    """A text or a number that should not be there; in UTF-8 or nearly so."""
    return rng.choice((*NUMBERS, *TEXTS)).encode("utf-8", "surrogatepass" if rng.random() < 0.5 else "backslashreplace")


def lines(data: bytes, rng: random.Random) -> Tuple[bytes, str]:
    """One field's value, a field gone, twice, or a line moved; of a binary field of the journal its length."""
    way = rng.randrange(5)
    fields = list(_FIELD.finditer(data))
    if way <= 1 and fields:
        found = rng.choice(fields)
        group = 2 if found[1] is not None else 4
        return data[: found.start(group)] + value(rng) + data[found.end(group) :], f"field {found[0][:30]!r}"
    if way == 2 and fields:
        found = rng.choice(fields)
        name = found[1] or found[3]
        size = rng.choice((0, 3, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)).to_bytes(8, "little")
        binary = name + b"\n" + size + value(rng) + b"\n"
        return data[: found.start()] + binary + data[found.end() + 1 :], f"binary field {name[:30]!r}"
    rows: List[bytes] = data.split(b"\n")
    at = rng.randrange(len(rows))
    if way == 3:
        rows.insert(rng.randrange(len(rows)), rows[at])
        return b"\n".join(rows), f"line {at} again"
    if rng.random() < 0.2:
        rows[at:at] = [rows[at]] * 20_000 if len(rows[at]) < 200 else []
        return b"\n".join(rows), f"line {at} often"
    del rows[at]
    return b"\n".join(rows), f"line {at} gone"
