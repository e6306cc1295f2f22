"""speedscope and collapsed stacks: the samples of the observation window, a profile a thread, nothing made up."""

from __future__ import annotations

import json
from typing import Optional, Tuple

import pytest

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem.report import NothingToShow
from postmortem.report.machine import collapsed, speedscope

from ....support.samples import py
from ..validators import check

NONE = fi.Diagnosis(None, "s")


def watched() -> ev.Evidence:
    main = ev.Thread(
        1,
        "MainThread",
        is_main=True,
        samples=(
            ev.Sample(7, 0.5, 0.9, (py("read", 3), py("main", 1))),
            ev.Sample(40, 0.0, 0.4, (ev.replace(py("send", 5), qualname="Box.send"), py("main", 1))),
        ),
    )
    deep = ev.Thread(
        2, samples=(ev.Sample(1, 0.1, 0.1, (py("f", 2), py("f", 2), py("<module>", 9)), ev.LeftOut(2, 1000)),)
    )
    processes = (ev.Process(1, argv=("python", "a.py"), threads=(main, deep, ev.Thread(3))),)
    return ev.Evidence(ev.Trigger("pid"), processes, window_s=1.0, tool_version="1.2")


def test_collapsed_stacks_begin_at_the_outermost_call() -> None:
    """In the order in which they were first seen; frames that were left out are one, and say how many they are."""
    text = collapsed.render(watched(), NONE)
    check("collapsed", text)
    owner = "process 1 (python a.py)"
    assert text.splitlines() == [
        f'{owner};thread 1 "MainThread";main (/app/work.py:1);Box.send (/app/work.py:5) 40',
        f'{owner};thread 1 "MainThread";main (/app/work.py:1);read (/app/work.py:3) 7',
        f"{owner};thread 2;<module> (/app/work.py:9);… 1,000 frames left out;f (/app/work.py:2);f (/app/work.py:2) 1",
    ]


def test_speedscope_has_a_profile_a_thread() -> None:
    """Named; weights are samples, and add up to the end; frames are shared."""
    text = speedscope.render(watched(), NONE)
    check("speedscope", text)
    document = json.loads(text)
    frames = document["shared"]["frames"]
    main, deep = document["profiles"]
    assert [profile["name"] for profile in (main, deep)] == ['thread 1 "MainThread"', "thread 2"]
    assert (main["weights"], main["endValue"], main["unit"]) == ([40, 7], 47, "none")
    named = [[frames[at]["name"] for at in stack] for stack in (*main["samples"], *deep["samples"])]
    assert named == [["main", "Box.send"], ["main", "read"], ["<module>", "… 1,000 frames left out", "f", "f"]]
    assert frames[0] == {"name": "main", "file": "/app/work.py", "line": 1}
    assert document["exporter"] == "postmortem@1.2"


def test_several_targets_are_told_apart() -> None:
    """A target without samples has no profile; the others' names say whose they are."""
    still = ev.Evidence(ev.Trigger("core"), (ev.Process(9, threads=(ev.Thread(9),)),))
    results = [("a", watched(), NONE), ("b", watched(), NONE), ("core", still, NONE)]
    names = [profile["name"] for profile in json.loads(speedscope.render_many(results))["profiles"]]
    assert names[0] == 'a: process 1 (python a.py), thread 1 "MainThread"' and len(names) == 4
    lines = collapsed.render_many(results).splitlines()
    assert len(lines) == 6 and lines[3].startswith("b: process 1 (python a.py);")


@pytest.mark.parametrize(
    ("window", "gaps", "why"),
    [
        (None, (), "nothing was watched over time, and a core shows only one moment; `postmortem capture` watches"),
        (1.0, (), "no Python stack was seen in the observation window"),
        (1.0, (ev.Gap("py-spy", "process 1", "py-spy was refused", "sudo"),), "py-spy was refused; sudo"),
    ],
)
def test_without_samples_it_says_why(window: Optional[float], gaps: Tuple[ev.Gap, ...], why: str) -> None:
    """An empty picture would look like an idle program."""
    found = ev.Evidence(ev.Trigger("pid"), (ev.Process(1, threads=(ev.Thread(1),)),), gaps, window_s=window)
    for draw in (speedscope.render, collapsed.render):
        with pytest.raises(NothingToShow, match="there are no samples to draw: ") as caught:
            draw(found, NONE)
        assert why in str(caught.value)
    with pytest.raises(NothingToShow):
        speedscope.render_many([("a", found, NONE)])
