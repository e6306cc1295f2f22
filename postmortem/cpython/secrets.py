"""Which names and texts look like secrets: they are masked wherever values are shown.

A value is judged by the name that leads to it (a variable, an attribute, the key of a dict), and a text also by what
stands in it: ``password=…``, ``Authorization: …``, the user's part of a URL. What is called ``x`` stays visible.
"""

from __future__ import annotations

import re

MASK = "<redacted>"

_STEMS = r"passw|passphrase|passcode|pwd|secret|token|credential|cookie|bearer|apikey|csrf|xsrf|authori|oauth"
_WORDS = r"pass|pw|auth|authentication|keys?(?!_?error)|dsn|pin|cvv|ssn|salt|otp|jwt|session_?id|sid"
_NAME = re.compile(rf"{_STEMS}|(?<![a-z])(?:{_WORDS})(?![a-z])")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Lengths are bounded and names begin where a word does, so that no text makes these slow.
_USER = re.compile(r"(?<=://)[^/@\s:]{0,200}:[^/@\s]{0,200}(?=@)")
_NAMED = re.compile(r"(?<![\w-])([\w-]{1,100})[\"']?\s{0,3}[=:]\s{0,3}")
_VALUE = re.compile(r"(?i)(?:(?:bearer|basic|digest|token)\s{1,3})?(?:\"[^\"]*\"?|'[^']*'?|[^\s,;&'\"]+)")
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s{1,3}[\w.~+/=-]{6,}")


def is_secret(name: str) -> bool:
    """Does a variable, attribute, key or option of this name hold a secret?"""
    return _NAME.search(_HUMP.sub("_", name).lower()) is not None


def masked(text: str) -> str:
    """A text without the secrets that it names."""
    text = _USER.sub(MASK, text)
    text = _SCHEME.sub(lambda found: f"{found.group(1)} {MASK}", text)
    parts, at = [], 0
    for name in _NAMED.finditer(text):
        value = _VALUE.match(text, name.end())
        if value is not None and name.start() >= at and is_secret(name.group(1)):
            parts += [text[at : name.end()], MASK]
            at = value.end()
    return "".join([*parts, text[at:]])
