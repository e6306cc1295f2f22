"""Lines of a text report: width, indentation and colour. Everything printed passes ``clean``."""

from __future__ import annotations

from typing import Dict, List

from .. import escape

_CODES: Dict[str, str] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}


class Page:
    """A list of lines of at most ``width`` columns; only a longer single word, such as a path, exceeds it."""

    def __init__(self, width: int, color: bool) -> None:
        self.width = max(40, width)
        self.color = color
        self._lines: List[str] = []

    def style(self, text: str, *names: str) -> str:
        """Return text in these styles, or unchanged without colour."""
        if not self.color or not text or not names:
            return text
        codes = ";".join(_CODES[name] for name in names)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def blank(self) -> None:
        """Add a blank line, unless the page is empty or ends in one."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def heading(self, text: str) -> None:
        """Add a blank line and a bold line."""
        self.blank()
        self.line(text, 0, "bold")

    def text(self, text: str, indent: int = 0, *styles: str, first: str = "") -> None:
        """Add a wrapped paragraph; ``first`` (such as ``- ``) precedes its first line only."""
        hang = " " * len(first)
        for number, part in enumerate(escape.wrap(text, self.width - indent - len(first))):
            lead = hang if number else first
            self._emit(" " * indent + lead, part, *styles)

    def line(self, text: str, indent: int = 0, *styles: str) -> None:
        """Add one line, cut at the width."""
        self._emit(" " * indent, escape.cut(escape.clean(text), self.width - indent), *styles)

    def rendered(self, text: str, indent: int = 0) -> None:
        """Add one line that is already cleaned, cut and styled."""
        self._lines.append((" " * indent + text).rstrip())

    def _emit(self, lead: str, text: str, *styles: str) -> None:
        self._lines.append((lead + self.style(text, *styles)).rstrip())

    def __str__(self) -> str:
        return "\n".join(self._lines).rstrip("\n") + "\n"
