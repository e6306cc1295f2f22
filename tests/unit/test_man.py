"""The manual pages are those of the commands as they are, and every reader of manual pages is content with them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Dict

import pytest

from postmortem.cli import commands
from postmortem.cli.table import table
from tools import man

from ..support import required


def test_the_pages_are_up_to_date() -> None:
    """`make docs` writes them."""
    assert man.present() == man.wanted()


def test_it_writes_what_is_missing_and_removes_what_is_old(tmp_path: Path) -> None:
    """A second run changes nothing."""
    (tmp_path / "postmortem-gone.1").write_text("")
    assert man.main(tmp_path) == 0
    assert man.present(tmp_path) == man.wanted()
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert man.main(tmp_path) == 0
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def rendered(*command: str, page: Path) -> str:
    """The page as it is read; fails when there is a warning."""
    required.program(command[0])
    done = subprocess.run(
        [*command, str(page)],
        env={**os.environ, "LC_ALL": "C.UTF-8", "GROFF_NO_SGR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    "reader", [("groff", "-man", "-Tutf8", "-ww"), ("mandoc", "-Tutf8", "-Wwarning")], ids=lambda r: r[0]
)
def test_readers_are_content_and_every_option_is_there(reader: tuple[str, ...]) -> None:
    """No warning; each flag of each command starts a line, each command and each help's first words are found."""
    texts: Dict[str, str] = {}
    for path in sorted(man.FOLDER.glob("*.1")):
        texts[path.name] = re.sub(".\x08", "", rendered(*reader, page=path))
    for command in table(commands.commands).values():
        text = texts[f"postmortem-{command.name}.1"]
        assert f"postmortem-{command.name}(1)" in re.sub(r"\s*\(1\)", "(1)", texts["postmortem.1"])
        for option in command.options:
            assert re.search(rf"^ +{re.escape(', '.join(option.flags))}\b", text, re.M), option
            assert option.help.split()[0] in text
