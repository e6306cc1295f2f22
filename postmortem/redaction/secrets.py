"""Names and texts that look like secrets, which are masked wherever values are shown.

A value is judged by the name that leads to it (a variable, an attribute, the key of a dict), a text also by its
content: ``password=…``, ``Authorization: …``, the user part of a URL. A secret under a harmless name, such as ``x``, is
recognised by its content alone.
"""

from __future__ import annotations

import re
from typing import Iterator, List, Tuple

MASK = "<redacted>"

_STEMS = r"passw|passphrase|passcode|pwd|secret|token(?!i[sz])|credential|cookie|bearer|apikey|csrf|xsrf|authori|oauth"
_WORDS = r"pass|pw|auth|authentication|keys?(?!_?error)|dsn|pin|cvv|ssn|salt|otp|jwt|session[_-]?id|sid"
_NAME = re.compile(rf"{_STEMS}|(?<![a-z])(?:{_WORDS})(?![a-z])")
_PLACE = re.compile(r"(?:[_-]|(?<=key)|(?<=pass)|(?<=token))(?:file|files|filename|path|dir|folder|stdin)$")
#: Counts of a language model's tokens, which are no secrets.
_COUNT = re.compile(r"(?:max|min|num|total|n)[_-](?:\w+[_-])?tokens$|token[_-](?:count|limit|budget|type|length)s?$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Lengths are bounded and names begin at a word boundary, so that no text makes these patterns slow.
_USER = re.compile(r"(?<=://)[^/@\s:\"']{0,200}:[^/\s\"']{0,200}(?=@)")
_NAMED = re.compile(r"(?<![\w-])([\w-]{1,100})[\"']?\s{0,3}[=:]\s{0,3}")
_VALUE = re.compile(r"(?i)(?:(?:bearer|basic|digest|token)\s{1,3})?(?:\"[^\"]*\"?|'[^']*'?|[^\s,;&'\"]+)")
_SCHEME = re.compile(r"(?i)\b(?:bearer|basic)\s{1,3}([\w.~+/=-]{6,})")
#: Secrets with a recognisable form: keys of AWS, GitHub, GitLab, Slack, Stripe, OpenAI, Google, PyPI, npm; a JSON web
#: token; a private key in PEM.
_SHAPED = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])|gh[opsur]_[A-Za-z0-9]{20,255}|github_pat_\w{20,255}"
    r"|glpat-[\w-]{20,255}|xox[abeprs]-[\w-]{10,255}|[rs]k_(?:live|test)_[A-Za-z0-9]{10,255}|sk-[\w-]{20,255}"
    r"|AIza[\w-]{35}|pypi-[\w-]{16,255}|npm_[A-Za-z0-9]{36}|eyJ[\w-]{8,2000}\.eyJ[\w-]{2,4000}\.[\w-]{0,2000})"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{0,8000}"
)


def is_secret(name: str) -> bool:
    """Return whether a variable, attribute, key or option of this name holds a secret; not if it names a file."""
    plain = _HUMP.sub("_", name).lower()
    return _NAME.search(plain) is not None and _PLACE.search(plain) is None and _COUNT.search(plain) is None


def secrets_in(text: str) -> List[Tuple[int, int]]:
    """Return the (start, end) of each secret named or shown in a text, in order and disjoint."""
    found: List[Tuple[int, int]] = []
    end = 0
    for first, last in sorted(_found(text)):
        if last > end:
            if first >= end:
                found.append((first, last))
            else:
                found[-1] = (found[-1][0], last)
            end = last
    return found


def _found(text: str) -> Iterator[Tuple[int, int]]:
    yield from (user.span() for user in _USER.finditer(text))
    yield from (credentials.span(1) for credentials in _SCHEME.finditer(text))
    yield from (shaped.span() for shaped in _SHAPED.finditer(text))
    for name in _NAMED.finditer(text):
        if is_secret(name.group(1)) and not text.startswith(MASK, name.end()):
            value = _VALUE.match(text, name.end())
            if value is not None:
                yield value.span()


def masked(text: str) -> str:
    """Return a text with the secrets that it names or shows masked."""
    parts, at = [], 0
    for first, last in secrets_in(text):
        parts += [text[at:first], MASK]
        at = last
    return "".join([*parts, text[at:]])
