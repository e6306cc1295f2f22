"""The HTML report: what stands in it without any script, that it asks nobody for anything, and that no name breaks it."""

from __future__ import annotations

import functools
import json
import re
from html.parser import HTMLParser
from typing import Any, Dict, List, Tuple

import pytest

from postmortem import evidence as ev
from postmortem import findings as fi
from postmortem import report
from postmortem.report.html import assets, page, source
from postmortem.report.phrases import labels
from postmortem.report.text.underline import Span
from postmortem.waitgraph import WaitGraph

from ....support.crowds import crowd, thrashing
from ....support.samples import BAD_IN_HTML, TESTCLIENT, detailed, hostile, sleeper, thrash
from ....support.work import lines_run

OURS = len(assets.VENDOR) + len(assets.SCRIPTS)


class Parsed(HTMLParser):
    """Elements with their attributes, the text outside of scripts and styles, and each script's text."""

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: List[Tuple[str, Dict[str, Any]]] = []
        self.scripts: List[Tuple[Dict[str, Any], str]] = []
        self.said: List[str] = []
        self._inside = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = tag
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == self._inside:
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        else:
            self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.said).split())

    @property
    def data(self) -> List[Dict[str, Any]]:
        return [json.loads(text) for attributes, text in self.scripts if attributes.get("type") == "application/json"]


def parsed(sample: Tuple[ev.Evidence, fi.Diagnosis]) -> Parsed:
    return Parsed(page.render(*sample))


def test_the_answer_comes_before_everything_else() -> None:
    """Verdict and confidence, lines, remedy, reason, then what can be explored, then the limits; all without a script."""
    text = parsed(thrash()).text
    order = [
        "gil-thrash",
        "likely",
        "61 threads hand the GIL to and fro",
        "Where to change the code",
        "starlette/testclient.py:153",
        "await anyio.sleep(0)",
        "What to do",
        "Wait on the queue instead",
        "WhyEach poll gives the GIL up",
        "Who waits for whom",
        "Threads, tasks and processes",
        "What each thread did",
        "Flame graphMerged stacks",
        "Also found",
        "busy-event-loop",
        "Ruled out",
        "Could not be decided",
        "What could not be read",
        "pip install py-spy",
        "Signature",
    ]
    at = 0
    for part in order:
        assert part in text[at:], part
        at = text.index(part, at)
    assert "Evidence11,800 hand-offs a second over 1.0 s" in text


def test_a_healthy_process_is_told_so() -> None:
    """Without a finding: what it does, nothing to change, and the parts that show it."""
    text = parsed(sleeper()).text
    assert "No known pattern was recognised" in text
    assert "Process 7 sleeps in clock_nanosleep, for up to 58 s" in text
    assert "Where to change the code" not in text
    assert "Who waits for whom" in text


def test_terms_are_explained_where_they_stand() -> None:
    """The GIL is explained right below the verdict."""
    text = parsed(thrash()).text
    assert text.index(labels.TERMS["GIL"]) < text.index("Where to change the code")


def test_the_line_is_marked_and_coloured() -> None:
    """The cited line, its expression, Python's words."""
    lines = [(20, "        found[key] = f(x) + g(y)  # twice\n"), (21, "        return found\n")]
    listing = source.listing(lines, 20, Span(20, 20, 21, 32))
    assert '<span class="line here"><span class="number">20</span>found[key]' in listing
    assert '<span class="c"># twice</span>' in listing
    assert '<span class="k">return </span>found\n' in listing
    assert "^" in re.findall(r'class="line marks">.*?</span>(.*?)\n', listing)[0]


def test_equal_bundles_give_equal_bytes() -> None:
    """No clock, no chance, no order of a set."""
    assert page.render(*thrash()) == page.render(*thrash())


@pytest.mark.parametrize("sample", [thrash, sleeper, hostile, thrashing, detailed])
def test_nothing_is_asked_of_the_network(sample: Any) -> None:
    """No element loads anything; a link is followed by a person only; the policy forbids the rest."""
    found = parsed(sample())
    for tag, attributes in found.elements:
        assert "src" not in attributes, tag
        assert tag not in ("link", "img", "iframe", "object", "base", "form"), tag
        assert not [key for key in attributes if key.startswith("on")], tag
        if "href" in attributes:
            assert re.match(r"https?://|#", attributes["href"])
    policy = next(a["content"] for t, a in found.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert policy.count("'sha256-") == OURS
    assert "url(" not in assets.styles()
    assert "@import" not in assets.styles()


def test_names_that_attack_are_text() -> None:
    """Tags, ends of scripts, escapes, reversed text: all of it is shown, none of it is obeyed."""
    document = page.render(*hostile(BAD_IN_HTML))
    found = Parsed(document)
    scripts = [a for t, a in found.elements if t == "script"]
    assert len(scripts) == OURS + 2  # the data, and the licences, which nobody runs
    assert not [t for t, a in found.elements if t == "img" or "onerror" in a or "onfocus" in a]
    assert "<img src=x" in found.text
    (data,) = found.data
    assert any("</script><script>window.hacked" in str(one) for one in data["strings"])
    assert document.encode("utf-8")
    shown = "".join([*found.said, *(text for a, text in found.scripts if a.get("type") == "application/json")])
    assert not [ch for ch in shown if not ch.isprintable() and ch != "\n"]


def test_lone_surrogates_are_visible() -> None:
    """A path that is no UTF-8 must not make the report fail when it is written."""
    evidence, diagnosis = hostile()
    document = page.render(evidence, diagnosis)
    assert "\\udc80" in document.encode("utf-8").decode("utf-8")


def test_ten_thousand_characters_are_cut_and_at_hand() -> None:
    """A summary or a name of that length leaves room for the rest, and can be had whole."""
    whole = "x" * 10_000
    evidence, _diagnosis = sleeper()
    thread = ev.replace(evidence.processes[0].threads[0], name=whole)
    evidence = ev.replace(evidence, processes=(ev.replace(evidence.processes[0], threads=(thread,)),))
    finding = fi.Finding(
        "sleeping", "likely", whole, "e", "r", culprits=(fi.Culprit(7, 7, None, whole, 1, whole, whole),)
    )
    found = parsed((evidence, fi.Diagnosis("sleeping", "s", (finding,))))
    heading = re.search(r"<h1.*?</h1>", page.render(evidence, fi.Diagnosis("sleeping", "s", (finding,))))
    assert heading is not None
    assert len(heading[0]) < 1000
    assert "All 10,000 characters" in found.text
    assert whole in found.data[0]["strings"]


def test_a_reference_that_would_run_is_no_link() -> None:
    """Findings are strings like any other."""
    evidence, _diagnosis = sleeper()
    finding = fi.Finding("sleeping", "likely", "s", "e", "r", ("javascript:alert(1)", "https://docs.python.org/3/"))
    links = [a["href"] for t, a in parsed((evidence, fi.Diagnosis("sleeping", "s", (finding,)))).elements if t == "a"]
    assert [link for link in links if not link.startswith("#")] == ["https://docs.python.org/3/"]


def test_several_targets_are_one_page_with_an_index() -> None:
    """Each target's verdict leads to its report; no id stands there twice."""
    results = [("core.1", *thrash()), ("core.2", *sleeper()), ("<b>", *hostile())]
    found = Parsed(page.render_many(results))
    assert found.text.index("core.1") < found.text.index("core.2") < found.text.index("Where to change the code")
    ids = [a["id"] for _t, a in found.elements if "id" in a]
    assert len(ids) == len(set(ids))
    targets = [a["href"] for t, a in found.elements if t == "a" and "data-target" in a]
    assert targets == ["#report-0", "#report-1", "#report-2"]
    assert {target[1:] for target in targets} <= set(ids)
    assert len(found.data) == 3


def test_every_link_inside_the_page_leads_somewhere() -> None:
    """The contents name parts that are there."""
    for sample in (thrash(), sleeper()):
        found = parsed(sample)
        ids = {a.get("id") for _t, a in found.elements}
        assert {a["href"][1:] for t, a in found.elements if t == "a" and a["href"].startswith("#")} <= ids


def test_the_data_say_who_waits_for_whom() -> None:
    """Rows, shapes and edges, as the scripts read them."""
    (data,) = parsed(crowd(3, 2)).data
    strings = [data["strings"][one[0]] + str(one[1]) if isinstance(one, list) else one for one in data["strings"]]
    names = [strings[row[2]] if row[2] >= 0 else row[1] for row in data["agents"]]
    assert names == ["MainThread", "Thread-0 (run)", "Thread-1 (run)", "Thread-2 (run)", "Task-0", "Task-1", 999]
    edge = data["agents"][1][3][0]
    assert (strings[data["shapes"][edge[0]][0]], strings[edge[1]], edge[2:]) == ("wants", "Lock Worker.mine #1", [2])
    assert data["circles"] == [[[1, 3]], [[4, 5]]]
    culprit = data["culprits"][0]
    assert (strings[culprit[0]], culprit[1]) == ("/app/crowd.py", 17)
    assert "".join(data["lines"][f"{culprit[0]}:17"][1::2]) == "with self.other:"


def test_source_lines_of_stacks_come_in_coloured_pieces() -> None:
    """Class and text in turn; the line is whole when they are put together."""
    (data,) = parsed(thrash()).data
    lines = ["".join(pieces[1::2]) for pieces in data["lines"].values()]
    assert "await anyio.sleep(0)" in lines
    assert any("k" in pieces[::2] for pieces in data["lines"].values())


def test_a_crowd_fits_into_three_megabytes() -> None:
    """2,000 threads and 20,000 tasks; each row is some dozen characters."""
    document = page.render(*crowd())
    assert len(document.encode()) < 3_000_000
    assert len(document) < 5 * len(page.render(*crowd(200, 2000)))


def test_rendering_takes_linear_work() -> None:
    """Ten times the crowd is no more than ten times the work; a part of it is the graph's, which is made here, too."""

    def work(threads: int) -> int:
        return lines_run(functools.partial(page.render, *crowd(threads, 10 * threads)))

    assert work(500) < 12 * work(50)
    assert work(500) < 8 * lines_run(functools.partial(WaitGraph, crowd(500, 5000)[0]))


def test_a_page_has_a_bound_of_its_own() -> None:
    """More threads than a page takes: those that findings cite are kept, the rest is counted."""
    evidence, diagnosis = crowd(40, 30)
    finding = ev.replace(diagnosis.findings[0], culprits=diagnosis.findings[0].culprits[-1:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("postmortem.report.html.agents.THREADS", 10)
        patch.setattr("postmortem.report.html.agents.TASKS", 5)
        (data,) = parsed((evidence, fi.Diagnosis("x", "x", (finding,)))).data
    assert data["leftOut"] == {"threads": 31, "tasks": 25}
    assert 1039 in [row[1] for row in data["agents"]]
    assert len(data["agents"]) == 16


def test_the_registry_leads_here() -> None:
    """By name and by suffix, one target or several."""
    assert report.format_for("x.html").name == "html"
    assert report.render("html", *sleeper()).startswith("<!DOCTYPE html>")
    assert report.FORMATS["html"].render_many([("a", *sleeper())], False, 80).endswith("</html>\n")


def test_deep_stacks_are_bounded() -> None:
    """The innermost and the outermost frames stand there, and how many are missing between them."""
    (data,) = parsed(detailed()).data
    frames, missing, behind = next(stack for stack in data["stacks"] if len(stack) == 3)
    thread = detailed()[0].processes[0].threads[0]
    assert (len(frames), behind) == (200, 150)
    assert len(frames) + missing == len(thread.stack) + 99_502


def test_same_place_is_one_place() -> None:
    """Sixty tasks at one line: one listing that says how many."""
    text = parsed(thrash()).text
    begin = text.index("Where to change")
    lines = text[begin : text.index("Evidence", begin)]
    assert lines.count(f"{TESTCLIENT}:153") == 1
    assert "60 tasks of process 100" in text
