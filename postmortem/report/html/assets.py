"""Styles and scripts of a page, from ``postmortem/report/assets``, with the hashes that allow the scripts to run."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import List, Tuple

from .markup import Markup

FOLDER = Path(__file__).resolve().parents[1] / "assets"

#: In the order of their elements: each uses those before it.
VENDOR = ("d3.min.js", "dagre.min.js", "d3-flamegraph.min.js")
LICENSES = ("d3.LICENSE.txt", "dagre.LICENSE.txt", "d3-flamegraph.LICENSE.txt")
STYLES = ("base.css", "verdict.css", "explore.css", "picture.css", "time.css")
SCRIPTS = (
    "dom.js", "theme.js", "model.js", "details.js", "filters.js", "list.js", "drawing.js", "picture.js", "timeline.js",
    "flame.js", "main.js",
)  # fmt: skip


@lru_cache(maxsize=1)
def styles() -> Markup:
    """Return the <style> element."""
    text = "\n".join((FOLDER / name).read_text("utf-8") for name in STYLES)
    return Markup(f"<style>\n{text}</style>")


@lru_cache(maxsize=1)
def scripts() -> Tuple[Markup, str]:
    """Return the <script> elements, and the source list of a content security policy that allows only these."""
    folders = [(FOLDER / "vendor" / name) for name in VENDOR] + [(FOLDER / name) for name in SCRIPTS]
    elements: List[str] = []
    hashes: List[str] = []
    for path in folders:
        text = path.read_text("utf-8").replace(
            "\x01", "\\x01"
        )  # in strings of dagre: reports contain no control characters
        assert "</script" not in text.lower(), f"{path.name} cannot stand in a page"
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
        elements.append(f"<script>{text}</script>")
        hashes.append(f"'sha256-{digest}'")
    return Markup("\n".join(elements)), " ".join(hashes)


@lru_cache(maxsize=1)
def licenses() -> Markup:
    """Return the licences of the bundled libraries, as a script element of plain text."""
    parts = [f"{name}\n\n{(FOLDER / 'vendor' / name).read_text('utf-8')}" for name in LICENSES]
    text = "\n\n".join(parts).replace("<", "&lt;")
    return Markup(f'<script type="text/plain" id="licences">\n{text}\n</script>')
