"""Reports of recorded hangs in a browser: nothing is asked of the network, nobody is shut out, each part can be worked."""

from __future__ import annotations

import json
from typing import Callable, List, Sequence

import pytest

from .conftest import CASES, Opened

pytestmark = pytest.mark.live

Open = Callable[..., Opened]


WIDTH_OF_CRUNCH = """[...document.querySelectorAll('.flames g.frame')]
    .find(g => g.getAttribute('aria-label').startsWith('crunch')).querySelector('rect').getBoundingClientRect().width"""
#: What a third of a second is, on the machine and under the load of this moment.
SORTING = """(() => {
    const numbers = Float64Array.from({length: 3e6}, (_, i) => (i * 7919) % 3000017);
    const began = performance.now();
    numbers.sort();
    return performance.now() - began;
})()"""


def violations(report: Opened, axe: str, rules: Sequence[str] = ()) -> List[str]:
    """Serious and critical ones that axe finds; only of these rules, if some are named."""
    report.tab.evaluate(f"typeof axe === 'undefined' && (() => {{ {axe} }})()")
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    found = report.tab.evaluate(f"axe.run(document, {json.dumps(options)}).then(result => result.violations)")
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0].get('failureSummary', '')[:300]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("case", CASES)
def test_a_report_is_sound(case: str, opened: Open, axe: str) -> None:
    """No complaint of the browser, no request, nothing that shuts people out in light or dark, no scrolling sideways on a
    phone."""
    report = opened(case)
    for button in report.tab.locator(".agents .row .head").all()[:3]:
        button.click()
    assert violations(report, axe) == []
    report.tab.emulate_media(color_scheme="dark")
    assert violations(report, axe, ["color-contrast"]) == []  # all that differs
    report.tab.set_viewport_size({"width": 360, "height": 740})
    assert report.tab.evaluate("document.documentElement.scrollWidth") <= 360
    assert (report.complaints, report.asked) == ([], [])


def test_the_picture_is_worked_by_mouse(opened: Open) -> None:
    """A click on a box shows its stack; the wheel with Ctrl and the buttons zoom, dragging moves."""
    report = opened("lock-order-deadlock/worker-process")
    tab = report.tab
    assert tab.locator(".node.culprit").count() >= 2
    assert tab.locator(".edge.circle").count() == 2
    tab.locator(".node .title", has_text="preload").click()
    assert "preload" in tab.locator(".panel h3").inner_text()
    assert "change here" in tab.locator(".panel .stack").inner_text()
    place = "document.querySelector('.graph > g').getAttribute('transform')"
    before = tab.evaluate(place)
    tab.get_by_role("button", name="Zoom in").click()
    zoomed = tab.evaluate(place)
    tab.locator(".canvas").evaluate("element => element.scrollIntoView({block: 'start'})")
    box = tab.locator(".graph").bounding_box()
    tab.mouse.move(box["x"] + 8, box["y"] + 100)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 80, box["y"] + 160, steps=3)
    tab.mouse.up()
    moved = tab.evaluate(place)
    tab.keyboard.down("Control")
    tab.mouse.wheel(0, -200)
    tab.keyboard.up("Control")
    report.until(f"{place} !== {json.dumps(moved)}")
    assert len({before, zoomed, moved}) == 3
    tab.get_by_role("button", name="Fit").click()
    assert tab.evaluate(place) == before


def test_the_picture_is_worked_by_keyboard(opened: Open) -> None:
    """One box is reached by Tab, arrows go on from there, Enter shows its stack, plus zooms."""
    report = opened("lock-order-deadlock/worker-process")
    tab = report.tab
    tab.locator(".tools button").last.focus()
    tab.keyboard.press("Tab")
    assert report.focused().startswith("MainThread (18414), main thread, cited as cause")
    tab.keyboard.press("ArrowDown")
    assert report.focused().startswith("process 18415")
    tab.keyboard.press("Enter")
    assert "process 18415" in tab.locator(".panel h3").inner_text()
    before = tab.evaluate("document.querySelector('.graph > g').getAttribute('transform')")
    tab.keyboard.press("+")
    assert tab.evaluate("document.querySelector('.graph > g').getAttribute('transform')") != before


def test_alike_ones_unfold(opened: Open) -> None:
    """Many tasks at one place are one box, from which some can be taken out."""
    tab = opened("gil-thrash/websocket-testclient").tab
    boxes = tab.locator(".node").count()
    tab.locator(".node.fold", has_text="tasks").first.click()
    assert "alike" in tab.locator(".panel h3").inner_text()
    tab.locator(".panel").get_by_role("button", name="Unfold").click()
    assert tab.locator(".node").count() > boxes
    tab.get_by_role("button", name="Start over").click()
    assert tab.locator(".node").count() == boxes


def test_the_list_is_searched_and_filtered(opened: Open) -> None:
    """A word of a stack, a state, who is cited: the rest goes; what fits none says so."""
    report = opened("gil-thrash/websocket-testclient")
    tab = report.tab
    summary, rows = tab.locator(".agents .summary"), tab.locator(".agents .row")
    every = rows.count()
    tab.get_by_label("Search").fill("call_soon_threadsafe nothing-like-it")
    report.until("document.querySelector('.agents .summary').textContent.includes('None')")
    assert rows.count() == 0
    tab.get_by_label("Search").fill("")
    report.until(f"document.querySelectorAll('.agents .row').length === {every}")
    tab.get_by_label("only those cited by findings").check()
    cited = rows.count()
    assert 0 < cited < every
    tab.get_by_label("only those cited by findings").uncheck()
    tab.get_by_label("GIL", exact=True).select_option("holds")
    assert summary.inner_text().startswith("1 of")
    tab.get_by_label("GIL", exact=True).select_option("")
    tab.get_by_label("group similar ones").uncheck()
    assert rows.count() > every


def test_a_row_opens_by_keyboard_and_leads_to_the_picture(opened: Open) -> None:
    """Enter shows stack and source; a button there leads to the same one in the picture, another to its flame graph."""
    report = opened("blocking-call-in-coroutine/gauge-console")
    tab = report.tab
    head = tab.locator(".agents .row.thread .head").first
    head.focus()
    tab.keyboard.press("Enter")
    assert head.get_attribute("aria-expanded") == "true"
    opened_row = tab.locator(".agents .row .opened").first
    assert opened_row.locator(".stack .frame").count() >= 2
    assert opened_row.locator(".stack .code .k, .stack .code .s, .stack .code .n").count() >= 1
    opened_row.get_by_role("button", name="Its flame graph").press("Enter")
    assert "over the window" in tab.locator(".flame select option:checked").inner_text()
    opened_row.get_by_role("button", name="Show in the picture").press("Enter")
    assert tab.locator(".node.chosen").count() == 1
    tab.keyboard.press("ArrowUp")  # the focus is in the picture
    assert tab.evaluate("document.activeElement.classList.contains('node')")


def test_native_frames_unfold_between_those_of_python(opened: Open) -> None:
    """A stack has both kinds; native ones in a row are one line that opens."""
    tab = opened("mp-join-before-drain/genome-scan").tab
    tab.locator(".agents .row.thread .head").first.click()
    stack = tab.locator(".agents .opened .stack").first
    before = stack.locator(".frame").count()
    stack.locator(".folded button").first.click()
    assert stack.locator(".frame").count() > before
    assert stack.locator(".frame.native .tag").first.inner_text() == "native"


def test_the_flame_graph_widens_and_finds(opened: Open) -> None:
    """Enter or a click widens a frame, Escape shows all; arrows move; a word is highlighted and counted."""
    report = opened("thrashing")
    tab = report.tab
    narrow = tab.evaluate(WIDTH_OF_CRUNCH)
    tab.locator(".flames g.frame[tabindex='0']").focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    assert report.focused().startswith("crunch at /app/crowd.py:30: 180 of 300 samples, 60 %")
    tab.keyboard.press("Enter")
    report.until(f"{WIDTH_OF_CRUNCH} > {narrow} * 1.3")
    tab.keyboard.press("Escape")
    report.until(f"{WIDTH_OF_CRUNCH} <= {narrow} + 1")
    tab.get_by_label("Highlight").fill("crunch")
    assert "1 frame found, in 60 %" in tab.locator(".flame .readout").inner_text()


def test_the_timeline_tells_each_stretch(opened: Open) -> None:
    """A lane a thread; the pointer and the arrow keys name what it was at, Enter shows its stack."""
    report = opened("thrashing")
    tab = report.tab
    assert tab.locator(".timeline .lane").count() == 4
    lane = tab.locator(".timeline .lane", has_text="sleeper").locator(".head")
    lane.focus()
    assert "blocked in a system call 70 %" in report.focused()
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".timeline .readout").inner_text() == "sleeper (20), 0 ms to 700 ms: blocked in a system call"
    box = lane.locator(".bar").bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 5)
    assert "800 ms to 1.00 s: runs" in tab.locator(".timeline .readout").inner_text()
    tab.keyboard.press("Enter")
    assert "nap" in tab.locator(".timeline .opened").inner_text()


def test_without_a_window_the_timeline_says_so(opened: Open) -> None:
    """A core shows one moment: no empty axes, and the flame graph is of that moment."""
    tab = opened("native-abort/relay-service").tab
    assert "no observation window" in tab.locator(".timeline").inner_text()
    assert "at the moment of capture" in tab.locator(".flame select option:checked").inner_text()


def test_the_colours_can_be_chosen(opened: Open) -> None:
    """The system decides until somebody does."""
    tab = opened("healthy/idle-asyncio-server").tab
    paper = "getComputedStyle(document.body).backgroundColor"
    tab.emulate_media(color_scheme="dark")
    dark = tab.evaluate(paper)
    tab.get_by_label("Colours").select_option("light")
    light = tab.evaluate(paper)
    tab.get_by_label("Colours").select_option("dark")
    assert (tab.evaluate(paper) == dark, light == dark) == (True, False)


def test_a_crowd_is_interactive_soon(opened: Open) -> None:
    """2,000 threads and 20,000 tasks: the page is ready in at most so much of what the browser needs to sort three million
    numbers (not of a script's: how far that is compiled is another matter in every run); its picture is small, search and
    paging work."""
    report = opened("crowd")
    tab = report.tab
    ready = tab.evaluate("performance.getEntriesByName('ready')[0].startTime")
    sorting = tab.evaluate(SORTING)
    print(f"crowd: ready after {ready:.0f} ms, sorting took {sorting:.0f} ms")
    assert ready < 8 * sorting
    assert tab.locator(".node").count() < 80
    assert tab.locator(".agents .row").count() <= 40
    began = tab.evaluate("performance.now()")
    tab.get_by_label("Search").fill("Task-19998")
    report.until("document.querySelector('.agents .summary').textContent.startsWith('2 of')")
    print(f"crowd: found after {tab.evaluate('performance.now()') - began:.0f} ms")
    tab.locator(".agents .row .head", has_text="Task-19998").last.click()  # the other one waits for it
    tab.get_by_role("button", name="Show in the picture").first.click()
    assert "Task-1999" in tab.locator(".panel h3").inner_text()
    tab.locator(".timeline button.next").click()
    assert tab.locator(".timeline .lane").count() == 40
    assert report.complaints == []


def test_names_that_attack_are_text(opened: Open, axe: str) -> None:
    """HTML, script ends, escapes, reversed text and ten thousand characters are shown, not obeyed."""
    report = opened("hostile")
    assert report.tab.evaluate("window.hacked") is None
    for head in report.tab.locator(".agents .row .head").all():
        head.click()
    assert violations(report, axe) == []
    report.tab.set_viewport_size({"width": 360, "height": 740})
    assert report.tab.evaluate("document.documentElement.scrollWidth") <= 360
    assert (report.complaints, report.asked) == ([], [])
