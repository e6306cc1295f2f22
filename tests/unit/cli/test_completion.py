"""What is offered for a line that is half typed."""

from __future__ import annotations

from typing import List

import pytest

from postmortem.capture.options import TABLE
from postmortem.cli import commands, completion
from postmortem.cli.table import table


def offered(*words: str) -> List[str]:
    found = completion.offers(commands.commands, list(words))
    return [offer.value if offer.kind == "plain" else f"{offer.kind} {offer.value}".rstrip() for offer in found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("postmortem an", ["analyze"]),
        ("postmortem nonsense ", []),
        ("postmortem capture --core ", ["auto", "sparse", "python", "full", "none"]),
        ("postmortem capture --core=s", ["--core=sparse"]),
        ("postmortem capture --core = s", ["sparse"]),  # as bash cuts it
        ("postmortem capture -t ", []),
        ("postmortem capture -o ", ["file"]),
        ("postmortem capture -t 5 --on-timeout l", ["leave"]),
        ("postmortem capture -t 5 pyth", ["command 4"]),
        ("postmortem capture -t 5 -- pyth", ["command 5"]),
        ("postmortem capture -t 5 -- git --ver", ["command 5"]),
        ("postmortem capture --foreground git pu", ["command 3"]),
        ("postmortem analyze --ex", ["--exe"]),
        ("postmortem analyze --exe ", ["file"]),
        ("postmortem analyze -f js", ["json"]),
        ("postmortem analyze co", ["file"]),
        ("postmortem analyze -- --co", ["file"]),
        ("postmortem doctor ", []),
        ("postmortem completion ", ["bash", "zsh", "fish"]),
        ("postmortem patterns gil-th", ["gil-thrash"]),
        ("postmortem demo gil-thrash/web", ["gil-thrash/websocket-testclient"]),
    ],
)
def test_offers(line: str, expected: List[str]) -> None:
    """Options, their values, arguments; where the command of a capture begins, the line is its own."""
    found = offered(*line.split(" "))
    assert found == expected


def test_all_commands_and_all_of_captures_options() -> None:
    """None is left out."""
    assert set(commands.commands.commands) <= set(offered("postmortem", ""))
    assert {option.long for option in TABLE} <= set(offered("postmortem", "capture", "--"))


def test_every_option_can_be_described() -> None:
    """The table that completion and manual share: each has a help, and a metavar unless it is a flag."""
    for command in table(commands.commands).values():
        assert command.summary.endswith(".")
        for option in command.options:
            assert option.flags and option.help, option
            assert all(flag.startswith("-") for flag in option.flags)
