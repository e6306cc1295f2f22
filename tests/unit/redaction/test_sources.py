"""Source lines: literals that are secrets become stars, and the columns of all else stay."""

from __future__ import annotations

import pytest

from postmortem.redaction.sources import masked_lines, masked_sources

from ...support.work import ends


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('password = "hunter2"', 'password = "*******"'),
        ("token: str = 'hunter2'", "token: str = '*******'"),
        ('run(host, password="hunter2", port=3)', 'run(host, password="*******", port=3)'),
        ('{"api_key": "hunter2", "a": "b"}', '{"api_key": "*******", "a": "b"}'),
        ('os.environ["TOKEN"] = "hunter2"', 'os.environ["TOKEN"] = "*******"'),
        ('environ.get("TOKEN", "hunter2")', 'environ.get("TOKEN", "*******")'),
        ('if password == b"hunter2":', 'if password == b"*******":'),
        ('set_password("hunter2")', 'set_password("*******")'),
        ('"postgres://ann:hunter2@host/db"', '"postgres://***********@host/db"'),
        ('f"Bearer {token}"', 'f"Bearer {token}"'),
        ('secret = f"{prefix}-x"', 'secret = f"{prefix}**"'),
        ("run()  # password: hunter2", "run()  # password: *******"),
        ('password = "pâss"', 'password = "*****"'),
        ('password = "hunt', 'password = "****'),
        ('x = "AKIAABCDEFGHIJKLMNOP"', 'x = "********************"'),
    ],
)
def test_a_secret_becomes_stars(line: str, shown: str) -> None:
    """One for each byte, so that what stands behind it keeps its column; once more changes nothing."""
    assert masked_lines([line]) == [shown]
    assert len(line.encode()) == len(shown.encode())
    assert masked_lines([shown]) == [shown]


@pytest.mark.parametrize(
    "line",
    [
        "password = getpass()",
        'log("password: %s", password)',
        'raise ValueError("no token")',
        'NAMES = ("password", "token")',
        '{"token": token, "balance": 1}',
        'names = {key: "customer" for key in keys}',
        "token = tokens[0]",
        'author = "ann"',
        "self.cache.put(key, b'x')",
        "",
    ],
)
def test_other_lines_stay(line: str) -> None:
    """Code is no secret, nor is a name of one."""
    assert masked_lines([line]) == [line]


def test_a_name_may_stand_on_the_line_before() -> None:
    """As formatters break long lines; in the lines of evidence, too, which are not all of the file's."""
    assert masked_lines(["password = (", '    "hunter2"']) == ["password = (", '    "*******"']
    kept = {"a.py": {3: "password = (", 4: '    "hunter2"', 9: '    "plain"'}, "b.py": {1: "run()"}}
    assert masked_sources(kept) == {
        "a.py": {3: "password = (", 4: '    "*******"', 9: '    "plain"'},
        "b.py": {1: "run()"},
    }
    assert masked_sources({"b.py": {1: "run()"}}) == {"b.py": {1: "run()"}}


@pytest.mark.parametrize("line", ['"' * 400, "'" * 399, "a=" * 200, "\\" * 400, "key" * 130 + '="', '{"key": ' * 50])
def test_no_line_makes_it_slow(line: str) -> None:
    """Lines come from the target, 400 characters at the most."""
    with ends():
        masked_lines([line] * 100)
