"""Pictures of three reports, for docs/report.md.

    python -m tools.screenshots

Renders recorded cases of corpora/, opens them in Chromium and writes docs/screenshots/*.png. Needs the package chromium, and what
'.[test]' installs.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Dict, Literal, NamedTuple

from postmortem import evidence as ev
from postmortem.classify.engine import classify
from postmortem.report.html import page
from postmortem.report.phrases.findings import in_words

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "screenshots"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


class Picture(NamedTuple):
    case: str
    scheme: Literal["light", "dark"]
    width: int
    height: int
    at: str  # CSS selector of what stands at the top


PICTURES: Dict[str, Picture] = {
    "verdict.png": Picture("lock-order-deadlock/worker-process", "light", 1240, 820, "body"),
    "waits.png": Picture("lock-order-deadlock/worker-process", "dark", 1240, 760, ".stage"),
    "phone.png": Picture("gil-thrash/websocket-testclient", "light", 390, 844, "body"),
}


def main() -> int:
    program = shutil.which("chromium")
    if program is None:
        print("chromium is not here: apt-get install chromium", file=sys.stderr)
        return 1
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        for name, picture in PICTURES.items():
            evidence = ev.decode((ROOT / "corpora" / picture.case / "evidence.json").read_bytes())
            path = Path(folder) / f"{name}.html"
            path.write_text(page.render(evidence, in_words(classify(evidence), evidence)), "utf-8")
            tab = browser.new_page(
                viewport={"width": picture.width, "height": picture.height},
                color_scheme=picture.scheme,
                reduced_motion="reduce",
            )
            tab.goto(path.as_uri())
            tab.wait_for_selector("[data-ready]", state="attached")
            tab.locator(picture.at).first.evaluate("element => { element.scrollIntoView(); scrollBy(0, -60); }")
            tab.screenshot(path=str(FOLDER / name))
            tab.close()
            print(f"{name}: {(FOLDER / name).stat().st_size:,} bytes")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
