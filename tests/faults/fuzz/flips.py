"""A few flipped bytes in the memory of a core must not change what it says of a proven deadlock."""

from __future__ import annotations

import random

from .cases import SECONDS, Outcome, Prepared, run
from .damage import Damage

BYTES = 20
#: Share of the trials that must give the clean core's verdict, as sure.
WANTED = 0.95


def flipped(prepared: Prepared, seed: int) -> Damage:
    """BYTES bytes of memory become others; each stored byte is as likely. Headers, notes and holes stay."""
    rng = random.Random(f"flips {seed}")
    made = Damage(said=[f"{BYTES} bytes flipped"])
    for _ in range(BYTES):
        at = prepared.mutator.anywhere(rng)
        made.patches.append((at, bytes([prepared.mutator.byte_at(at) ^ rng.randrange(1, 256)])))
    return made


def trial(prepared: Prepared, seed: int, seconds: float = SECONDS) -> Outcome:
    """A failure is only what no damage may cause; compare with ``same``."""
    return run(prepared.base, flipped(prepared, seed), seconds=seconds)


def same(prepared: Prepared, outcome: Outcome) -> bool:
    """The clean core's verdict and confidence?"""
    keys = ("verdict", "confidence")
    return outcome.failure is None and all(outcome.answer.get(key) == prepared.clean[key] for key in keys)
