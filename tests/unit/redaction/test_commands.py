"""Command lines: what is a secret in them, for any program and for those whose options are known."""

from __future__ import annotations

import shlex
from typing import List

import pytest

from postmortem.redaction.commands import masked_argv

from ...support.work import ends

HIDDEN = "<redacted>"


@pytest.mark.parametrize(
    "line",
    [
        "prog --password {} more",
        "prog --token={} more",
        "prog -token {}",
        "prog --password -{}",
        "prog --session-id {}",
        "env API_KEY={} prog",
        "env API_KEY='{} and more' prog",
        "docker run -e SECRET={} image",
        "java -DTOKEN={} Main",
        "prog user=ann password={}",
        "git clone https://ann:{}@host/repo",
        "prog postgres://ann:x{}@host/db ann",
        "prog ann:{}@host/db",
        "prog 'https://host/?api_key={}&x=1'",
        "curl -H 'Authorization: Bearer {}' url",
        "curl -H 'Authorization: AWS4-HMAC-SHA256 Credential=x, Signature={}' url",
        "curl -H 'Cookie: a=1; b={}' url",
        "curl -u ann:{} url",
        "curl -uann:{} url",
        "curl --user ann:{} url",
        "curl --user=ann:{} url",
        "mysql -p{} db",
        "sudo /usr/bin/mysqldump -u root -p{} db",
        "sshpass -p {} ssh host",
        "docker login -u ann -p {}",
        "redis-cli -a {}",
        "smbclient -U ann%{} share",
        "openssl rsa -passin pass:{}",
        'prog \'{{"password": "{}"}}\'',
        "sh -c 'PGPASSWORD={} psql'",
        "bash -ec 'cd /; mysql -p{} db'",
        "sh -c \"curl -H 'X-Api-Key: {}' url\"",
        "sh -c \"sh -c 'mysql -p{}'\"",
        "python3 -c 'password = \"{}\"; run()'",
    ],
)
def test_a_secret_goes_and_nothing_else(line: str) -> None:
    """As many words as before, those without the secret unchanged; whoever asks hears of it; once more changes nothing."""
    secret = "hunter2x"
    heard: List[str] = []
    words = shlex.split(line.format(secret))
    shown = masked_argv(words, heard.append)
    assert len(shown) == len(words)
    assert secret not in " ".join(shown)
    assert [word for word in words if secret not in word] == [s for w, s in zip(words, shown) if secret not in w]
    assert masked_argv(shown) == shown
    assert any(secret in each for each in heard) or "python3 -c" in line  # literals may be ordinary words


@pytest.mark.parametrize(
    "line",
    [
        "prog --key-file /a/key.pem --password-file=/run/secrets/x --token-path f",
        "prog --no-password hello",
        "prog --ask-pass -i inventory",
        "prog --password --verbose",
        "prog --password",
        "prog -p 80 -u ann --port=80",
        "docker run -p 8080:80 image",
        "ssh git@github.com:org/repo",
        "python -m pytest -k 'token or password' tests/test_keys.py::test_token",
        "python -c 'import getpass; password = getpass.getpass()'",
        "prog --author ann --max-tokens 512 --tokenizer words",
        "curl -u ann https://host/path",
        "",
    ],
)
def test_what_is_no_secret_stays(line: str) -> None:
    """Names of files that hold secrets, options without a value, ports."""
    words = tuple(shlex.split(line))
    assert masked_argv(words) == words


@pytest.mark.parametrize("part", ["--password=", "'", "a:", "x@", "\\", "-"])
def test_no_word_makes_it_slow(part: str) -> None:
    """Command lines come from the target: time grows with their length (half a second here), not with its square (minutes)."""
    word = part * (150_000 // len(part))
    with ends():
        masked_argv(["sh", "-c", word, word, "python", "-c", word, "curl", "-u", word])


def test_a_secret_in_code_is_told_too() -> None:
    """One that has a secret's form, in the words of ``python -c``, is masked elsewhere as well."""
    seen: List[str] = []
    code = "x = 'AKIAABCDEFGHIJKLMNOP'\nprint(x)"
    assert masked_argv(["python", "-c", code], seen.append)[2] == code.replace("AKIAABCDEFGHIJKLMNOP", "*" * 20)
    assert seen == ["AKIAABCDEFGHIJKLMNOP"]
