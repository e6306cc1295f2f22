"""Conversion of evidence to and from JSON."""

from __future__ import annotations

from typing import Any, Optional

import msgspec

from . import upgrade, usable
from .document import SCHEMA, Evidence

#: Indented JSON is half as large again, and a reader refuses what exceeds ``usable.MOST_BYTES``.
_MOST_INDENTED = 16 << 20


def encode(evidence: Evidence) -> bytes:
    """Encode evidence as JSON; keys follow the order of the fields, so equal evidence gives equal bytes."""
    return json_bytes(evidence)


def json_bytes(value: Any) -> bytes:
    """Encode a value, of types that msgspec can write, as JSON: indented up to ``_MOST_INDENTED`` bytes, compact beyond.

    Lone surrogates (from paths that are not UTF-8) become backslash escapes.
    """
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a path that is not UTF-8; rare, so the walk is made only then
        encoded = msgspec.json.encode(_spelled_out(msgspec.to_builtins(value)))
    return msgspec.json.format(encoded, indent=1) if len(encoded) <= _MOST_INDENTED else encoded


def _spelled_out(value: Any) -> Any:
    """Return a copy of a JSON-like value with lone surrogates as backslash escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_spelled_out(key): _spelled_out(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled_out(item) for item in value]
    return value


def decode(data: bytes, most: Optional[int] = None) -> Evidence:
    """Decode evidence from JSON of at most ``most`` bytes (None: ``usable.MOST_BYTES``).

    The result needs no further check of ids and numbers. Raises ValueError, with one sentence, if the data is too
    large, damaged, of another schema, or fails a check of ``usable``.
    """
    most = usable.MOST_BYTES if most is None else most
    if len(data) > most:
        raise ValueError(f"not readable as {SCHEMA}: it is larger than {most >> 20} MB")
    try:
        evidence = upgrade.upgraded(msgspec.json.decode(data, type=Evidence))
        if evidence.schema == SCHEMA:
            usable.check(evidence)
    except (msgspec.MsgspecError, ValueError) as exc:  # includes its refusal of invalid UTF-8
        raise ValueError(f"not readable as {SCHEMA}: {exc}") from exc
    except RecursionError:
        raise ValueError(f"not readable as {SCHEMA}: nested too deeply") from None
    if evidence.schema != SCHEMA:
        raise ValueError(f"written as {evidence.schema[:40]!r}, this version reads {SCHEMA}")
    return evidence
