"""Which names and texts are masked."""

from __future__ import annotations

import pytest

from postmortem.redaction.secrets import is_secret, masked

from ...support.work import ends

#: Characters of a long text.
MANY = 1 << 18


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_password",
        "PASSWD",
        "pwd",
        "apiKey",
        "API_KEY",
        "key",
        "token",
        "accessToken",
        "auth",
        "authorization",
        "OAUTH",
        "secret",
        "cookie",
        "credentials",
        "dsn",
        "db_dsn",
        "session_id",
        "sessionid",
        "private_key",
        "x-csrf-token",
        "--password",
    ],
)
def test_names_of_secrets(name: str) -> None:
    """In any case and any convention of writing."""
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "author",
        "monkey",
        "keyboard",
        "x",
        "bypass",
        "passenger",
        "spin",
        "side",
        "number",
        "user",
        "KeyError",
        "token_file",
        "--key-path",
        "passfile",
        "tokenizer",
        "max_new_tokens",
    ],
)
def test_names_of_other_things(name: str) -> None:
    """A part of a word is no sign."""
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgres://ann:hunter2@host/db", "postgres://<redacted>@host/db"),
        ("host=h password=hunter2 user=ann", "host=h password=<redacted> user=ann"),
        ('{"password": "hunter 2", "a": 1}', '{"password": <redacted>, "a": 1}'),
        ("Authorization: Bearer hunter2", "Authorization: <redacted>"),
        ("sent Bearer hunter2abc", "sent Bearer <redacted>"),
        ("--token=hunter2", "--token=<redacted>"),
        ("https://h/?api_key=hunter2&x=1", "https://h/?api_key=<redacted>&x=1"),
        ("https://h/path?x=1", "https://h/path?x=1"),
        ("number: 3, author: ann", "number: 3, author: ann"),
        ("https://ann:hunt@er2@host/db", "https://<redacted>@host/db"),
        ("key AKIAABCDEFGHIJKLMNOP, ghp_abcdefghijklmnopqrstuvwxyz", "key <redacted>, <redacted>"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2ln is it", "<redacted> is it"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END", "<redacted>-----END"),
        ("", ""),
    ],
)
def test_secrets_within_texts(text: str, expected: str) -> None:
    """What follows a name is masked, the rest stays."""
    assert masked(text) == expected
    assert masked(expected) == expected  # once more changes nothing


def test_what_is_masked_already_stays() -> None:
    """Also before a bracket that follows directly."""
    assert masked("<Session password=<redacted>>") == "<Session password=<redacted>>"


@pytest.mark.parametrize("start", ["", "://"])
@pytest.mark.parametrize("part", [":", "=", "a=", "key='", "a_", "pass", "-"])
def test_no_text_makes_it_slow(start: str, part: str) -> None:
    """Texts come from the target: time grows with their length (a tenth of a second here), not with its square (minutes)."""
    with ends():
        masked(start + part * (MANY // len(part)))
