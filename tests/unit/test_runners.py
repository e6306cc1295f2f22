"""What CI runners obey in a log does not survive; everything else does, and what was put in can be taken out again."""

from __future__ import annotations

import json

import pytest

from postmortem import runners
from postmortem.narration import escaped
from postmortem.pytesting import answer
from postmortem.report.escape import clean, wrap
from postmortem.report.machine import json_text

from ..support.obeying import ORDERS, obeyed


@pytest.mark.parametrize("order", ORDERS)
def test_no_order_survives(order: str) -> None:
    """Alone, behind words, behind space, in capitals, at the beginning of a later line; twice is as once; a reader who takes
    out the backslash has it again."""
    for text in (order, f"word {order}", f"  {order}", order.upper(), f"fine\n{order}", f"{order}{order}"):
        shown = runners.defused(text)
        assert obeyed(shown) == []
        assert runners.defused(shown) == shown
        assert shown.replace("\\", "") == text


@pytest.mark.parametrize("order", ORDERS)
def test_orders_are_seen_by_the_check(order: str) -> None:
    """The check itself: each of them is one."""
    assert obeyed(f"fine\n{order}\n") != []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a::b",
        "std::mutex::lock",
        "##",
        "## heading",
        "#[derive]",
        "-- x",
        "---x",
        "a --- b",
        "1 + 2",
        "~/x",
        "__init__",
        "section_started",
        "travis_folder",
        "    ~~~~^^^",
        "test_it.py::test_x",
    ],
)
def test_what_nobody_obeys_stays(text: str) -> None:
    """Names of C++, paths, headings, marks under a source line."""
    assert runners.defused(text) == text
    assert obeyed(text) == []


@pytest.mark.parametrize("order", ORDERS)
def test_all_that_prints_goes_through_it(order: str) -> None:
    """Reports' one line and wrapped words, the narration, a failure of pytest's; with what moves a terminal in front."""
    for text in (order, f"\x1b[2J{order}", f"\r{order}", f"\u2028{order}", f"\t{order}"):
        report = {
            "verdict": "x",
            "findings": [
                {
                    "pattern": "x",
                    "confidence": "likely",
                    "summary": text,
                    "remedy": text,
                    "culprits": [{"file": text, "line": 3, "function": text, "source": text}],
                }
            ],
        }
        printed = [
            clean(text),
            "\n".join(wrap(f"x {text}", 4)),
            escaped(text),
            answer.message("call", 1.0, report, text),
            answer.failed("call", 1.0, text),
        ]
        for one in printed:
            assert obeyed(one) == []
            assert all(ch.isprintable() or ch == "\n" for ch in one)


@pytest.mark.parametrize("order", ORDERS)
def test_json_is_no_order_and_says_the_same(order: str) -> None:
    """Written with escapes, read with none."""
    text = json_text.dump({order: [order]})
    assert obeyed(text) == []
    assert json.loads(text) == {order: [order]}
