"""Relative names of a program's own files."""

from __future__ import annotations

from pathlib import Path

from postmortem.evidence import Process, PythonFrame, Thread
from postmortem.extract.sourcecode.scripts import located
from postmortem.extract.sourcecode.sources import read_sources
from tests.support.bundles import files_here


def test_relative_names_are_looked_for_beside_the_script() -> None:
    """A name's own directories must fit; absolute and frozen names, and names of a process whose directory is not
    known, stay as they are."""
    assert located("program.py", "/srv/app") == "/srv/app/program.py"
    assert located("./app/program.py", "/srv/app") == "/srv/app/program.py"
    assert located("lib/other.py", "/srv/app") == "lib/other.py"
    assert located("/else/program.py", "/srv/app") == "/else/program.py"
    assert located("<frozen importlib._bootstrap>", "/srv/app") == "<frozen importlib._bootstrap>"
    assert located("program.py", None) == "program.py"


def test_two_programs_of_one_name_show_no_source(tmp_path: Path) -> None:
    """Lines of one program are never shown for the other."""
    processes = []
    for pid, name in ((1, "one"), (2, "two")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "program.py").write_text(f"name = {pid}\n")
        thread = Thread(tid=pid, stack=(PythonFrame("program.py", 1, "main"),))
        processes.append(Process(pid=pid, threads=(thread,), directory=str(folder)))
    with files_here() as files:
        assert read_sources(processes[:1], lambda _pid: files).lines == {"program.py": {1: "name = 1"}}
        assert read_sources(processes, lambda _pid: files).lines == {}
