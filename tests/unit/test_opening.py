"""One package opens what is foreign: in the sources, and, by the audit hook, in everything that the tests run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import List, Tuple

import pytest

from .. import opening, opening_hook
from ..allowed import ALLOWED
from ..conftest import violations

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_else_opens_files() -> None:
    """Every call that opens, lists, makes, renames, removes or resolves files, or starts a program, is in
    `postmortem/foreign` or in `tests/allowed.py`."""
    found = opening.found_in_sources()
    assert len(found) > 50
    assert [f"{module}:{line}: {call}" for (module, call), line in found.items() if (module, call) not in ALLOWED] == []


def test_the_list_has_nothing_that_is_gone() -> None:
    """An entry that no source needs any more is deleted; each has a reason; they are sorted."""
    assert sorted(set(ALLOWED) - set(opening.found_in_sources())) == []
    assert list(ALLOWED) == sorted(ALLOWED)
    assert all(len(reason.split()) > 3 for reason in ALLOWED.values())


def test_audit_events_and_calls_fit_together() -> None:
    """The hook watches the events that the table explains, and each of them has a call that may cause it."""
    assert set(opening.EVENTS) == set(opening_hook.EVENTS)
    known = opening.FUNCTIONS | opening.METHODS
    for event, causes in opening.EVENTS.items():
        for cause in causes:
            assert f"{cause.split('.')[0]}.*" in known or any(name.startswith(cause) for name in known), (event, cause)


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("open('x')", "open"),
        ("import os as system\nsystem.open('x', 0)", "os.open"),
        ("from os import open as reach\nreach('x', 0)", "os.open"),
        ("import os\nos.path.realpath('x')", "os.path.realpath"),
        ("from os.path import exists\nexists('x')", "os.path.exists"),
        ("import io\nio.open('x')", "io.open"),
        ("from pathlib import Path\nPath('x').read_text()", ".read_text"),
        ("def f(path):\n    return [p for p in path.iterdir()]", ".iterdir"),
        ("import os\nlist(map(os.stat, names))", "os.stat"),
        ("def f():\n    import shutil\n    shutil.rmtree('x')", "shutil.rmtree"),
        ("import tempfile\ntempfile.mkdtemp()", "tempfile.mkdtemp"),
        ("import mmap\nmmap.mmap(3, 0)", "mmap.mmap"),
        ("from xml.etree import ElementTree\nElementTree.parse('x')", "xml.etree.ElementTree.parse"),
        ("import xml.etree.ElementTree as ET\nET.parse('x')", "xml.etree.ElementTree.parse"),
        ("import zipfile\nzipfile.ZipFile('x')", "zipfile.ZipFile"),
        ("import subprocess\nsubprocess.run(['git'])", "subprocess.run"),
    ],
)
def test_a_breach_is_found_in_a_source(source: str, call: str) -> None:
    """Whatever name the module or the function has been given."""
    assert call in {name for name, _line in opening.calls(ast.parse(source))}


@pytest.mark.parametrize(
    "source",
    [
        "from .files import read_file\nread_file('x', 9)",
        "from . import procfs\nprocfs.stat('x')",
        "from ..bundle import Bundle\nBundle.open('x')",
        "import os\nos.close(3)\nos.path.join('a', 'b')",
        "import shutil\nshutil.get_terminal_size()",
        "'x'.replace('a', 'b')",
        "def read(buffer: mmap.mmap) -> None: ...",
    ],
)
def test_what_opens_nothing_is_not_found(source: str) -> None:
    """The check does not cry wolf."""
    assert list(opening.calls(ast.parse(source))) == []


def test_a_text_that_is_no_python_asks_the_current_directory_for_nothing(tmp_path: Path) -> None:
    """For the line of a syntax error, the interpreter opens the file that the text is said to come from: ``<unknown>``
    unless another name is given. A FIFO of that name would keep us for ever; an empty name is no file's."""
    found = []
    meant = ast.dump(ast.parse("ast.parse", mode="eval").body)
    for path in sorted((ROOT / "postmortem").rglob("*.py")):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)) if "ast.parse" in source else ():
            if isinstance(node, ast.Call) and ast.dump(node.func) == meant:
                found.append((path.name, [(word.arg, ast.literal_eval(word.value)) for word in node.keywords]))
    assert len(found) >= 4
    assert [each for each in found if each[1] != [("filename", "")]] == []
    os.mkfifo(tmp_path / "<unknown>")
    script = "import ast\ntry: ast.parse('a b', filename='')\nexcept SyntaxError: print('told')"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, timeout=60, check=True)
    assert done.stdout == b"told\n"


PLANTED = """
import os, sys
def read(): return open("/dev/null").close()
def look(): return os.listdir("/")
def kernel(): return os.open("/proc/self/stat", os.O_RDONLY)
"""


def _run(tmp_path: Path, words: List[str], module: str = "planted") -> str:
    """The notes of a child with a package that has this module; the hook comes by the environment's .pth file."""
    package = tmp_path / "postmortem"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / f"{module}.py").write_text(PLANTED)
    notes = tmp_path / "notes"
    notes.touch()
    setting = f"{notes}:{package}:{ROOT / 'tests'}"
    environment = {**os.environ, opening_hook.VARIABLE: setting, "PYTEST_CURRENT_TEST": "tests/x.py::test_it (call)"}
    subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, check=True, timeout=60)
    return notes.read_text()


in_environment = pytest.mark.skipif(
    sys.prefix == sys.base_prefix, reason="the hook reaches children in a virtual environment"
)


@in_environment
@pytest.mark.parametrize("isolated", [(), ("-I",)])
def test_a_breach_in_a_child_is_reported(tmp_path: Path, isolated: Tuple[str, ...]) -> None:
    """A child that opens a file outside of `foreign`, even an isolated one: told with module, event, path and test."""
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from postmortem import planted; planted.read(); planted.look()"
    found = violations(_run(tmp_path, [*isolated, "-c", script]))
    assert len(found) == 2
    assert found[0].startswith("postmortem/planted.py:3: open ('/dev/null',), in tests/x.py::test_it")
    assert found[1].startswith("postmortem/planted.py:4: os.listdir ('/',), in tests/x.py::test_it")


@in_environment
def test_what_is_allowed_is_not_reported(tmp_path: Path) -> None:
    """A module may cause the events of the calls that it is allowed, and no others."""
    assert ("quiet", "open") in ALLOWED
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from postmortem import quiet; quiet.read(); quiet.look()"
    )
    (told,) = violations(_run(tmp_path, ["-c", script], "quiet"))
    assert told.startswith("postmortem/quiet.py:4: os.listdir")


@in_environment
def test_a_target_is_not_watched(tmp_path: Path) -> None:
    """A program that is no part of postmortem has no hook, whatever variable it has inherited."""
    (tmp_path / "target.py").write_text(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from postmortem import planted; planted.read()"
    )
    assert _run(tmp_path, ["target.py"]) == ""


def test_this_process_is_watched() -> None:
    """pytest's own process, a worker included, has the hook: what it notes goes where the session will look."""
    notes, package, tests = os.environ[opening_hook.VARIABLE].split(":")
    assert Path(notes).is_file()
    assert (package, tests) == (str(ROOT / "postmortem"), str(ROOT / "tests"))
    source = compile("def plant(): open('/dev/null').close()", f"{package}/planted_here.py", "exec")
    space: dict = {}  # type: ignore[type-arg]
    exec(source, space)
    before = Path(notes).read_text("utf-8", "replace")
    space["plant"]()
    told = Path(notes).read_text("utf-8", "replace")[len(before) :]
    assert "planted_here\t1\topen\t('/dev/null',)" in told
    with open(notes, "r+b") as stream:  # it was this test's own: the session is not to fail for it
        kept = b"".join(line for line in stream.read().splitlines(True) if not line.startswith(b"planted_here\t"))
        stream.seek(0)
        stream.write(kept)
        stream.truncate()
