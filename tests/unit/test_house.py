"""The house is in order: linter, types, the wheel, and what the README promises to be typed."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import List

import pytest

from postmortem.classify.engine import all_patterns
from postmortem.cli.commands import commands as group

from ..support import required
from ..support.sources import PACKAGE, ROOT, imports_of_test


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def test_the_linter_is_content() -> None:
    """ruff finds nothing, with the rules of pyproject.toml."""
    done = run(sys.executable, "-m", "ruff", "check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy needs Python 3.9")
def test_the_types_are_right() -> None:
    """mypy --strict finds nothing in the package and its tests; exceptions stand in pyproject.toml, with reasons."""
    done = run(sys.executable, "-m", "mypy", "--strict")
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy needs Python 3.9")
def test_the_types_of_gdb_s_scripts_are_right(tmp_path: Path) -> None:
    """gdb/ is called as gdb's own module is, and mypy would take it for that: it gets the name under which gdb imports it."""
    (tmp_path / "postmortem_gdb").symlink_to(ROOT / "gdb", target_is_directory=True)
    words = ("--strict", "--explicit-package-bases", "-p", "postmortem_gdb")
    done = run(sys.executable, "-m", "mypy", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_digits_are_asked_for_in_one_place() -> None:
    """`'²'.isdigit()` is true, and `int('²')` fails: what becomes a number is asked by foreign.numbers."""
    asking = re.compile(r"\.(isdigit|isdecimal|isnumeric)\(\)")
    allowed = {
        "foreign/numbers.py",
        "native/assess.py",  # the first character of a line of gdb's, which becomes no number
        "redaction/evidence.py",  # whether a word may be a secret
    }
    package = ROOT / "postmortem"
    sources = {path.relative_to(package).as_posix(): path.read_text("utf-8") for path in package.rglob("*.py")}
    assert {name for name, source in sources.items() if asking.search(source)} - allowed == set()


def test_tests_share_through_support() -> None:
    """Nothing imports a test module: what several tests use lies in tests/support."""
    tests = ROOT / "tests"
    borrowed = {
        f"{path.relative_to(tests)}: {name}"
        for path in tests.rglob("*.py")
        for name in imports_of_test(path)
        if name.startswith("tests.") and any(part.startswith("test_") for part in name.split("."))
    }
    assert borrowed == set()


def test_unit_tests_mirror_the_package() -> None:
    """A unit test lies in the folder of the package that it tests; at the top, beside tests of modules that lie at the
    package's top, only tests of the whole house."""
    unit = ROOT / "tests" / "unit"
    of_the_house = {
        "architecture", "contributing", "environment", "house", "man", "new_pattern", "offsets", "opening", "starting",
    }  # fmt: skip
    lost = [
        str(path.relative_to(unit))
        for path in sorted(unit.rglob("test_*.py"))
        if not (PACKAGE / path.relative_to(unit).parent / "__init__.py").is_file()
        or (
            path.parent == unit
            and path.stem[len("test_") :] not in of_the_house | {p.stem for p in PACKAGE.glob("*.py")}
        )
    ]
    assert lost == []


def test_what_ci_must_have_is_asked_for_in_one_place() -> None:
    """No test skips by itself for want of a program: tests.support.required does, and fails it in CI."""
    tests = ROOT / "tests"
    alone = re.compile(
        r"find_gdb\(\) is None|which\([^)]*\) is None|not (shutil\.)?which\(|is not installed|environ\.get\(.CI.\)"
    )
    skips = re.compile(r"skip(if)?\(")
    found = [
        str(path.relative_to(tests))
        for path in sorted(tests.rglob("*.py"))
        if path.name not in ("required.py", "test_house.py")
        and any(alone.search(line) and skips.search(line) for line in _statements(path))
    ]
    assert found == []


def _statements(path: Path) -> List[str]:
    """Lines of each `if` and call."""
    source = path.read_text("utf-8")
    if "skip" not in source:
        return []
    lines = source.splitlines()
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.If, ast.Call, ast.IfExp)))
    return ["\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in nodes]


@pytest.mark.parametrize(("in_ci", "outcome"), [(True, "Failed"), (False, "Skipped")])
def test_what_is_missing_fails_in_ci_alone(in_ci: bool, outcome: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is the same."""
    monkeypatch.setattr(required, "IN_CI", in_ci)
    with pytest.raises(BaseException, match="no-such-program is not installed: apt-get install") as raised:
        required.program("no-such-program")
    assert type(raised.value).__name__ == outcome
    with pytest.raises(BaseException, match="what is missing") as raised:
        required.check(required.needs(False, "what is missing").mark)
    assert type(raised.value).__name__ == outcome
    required.check(required.needs(True, "nothing").mark)


def test_an_import_of_a_test_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From whichever folder, of a module or of a name in it."""
    monkeypatch.setattr("tests.support.sources.ROOT", tmp_path)
    path = tmp_path / "tests" / "live" / "test_a.py"
    path.parent.mkdir(parents=True)
    path.write_text("from .test_b import x\nfrom ..unit import test_c\ndef f():\n    import tests.unit.test_d\n")
    assert imports_of_test(path) == {"tests.live.test_b.x", "tests.unit.test_c", "tests.unit.test_d"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = run(
        sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "--quiet", "-w", str(folder)
    )
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("postmortem-*.whl")
    return built


def test_the_wheel_carries_what_lies_outside_the_package(wheel: Path) -> None:
    """gdb's scripts and the demo's case travel inside it, the schema too."""
    names = zipfile.ZipFile(wheel).namelist()
    shipped = "postmortem/_shipped"
    case = f"{shipped}/corpora/gil-thrash/websocket-testclient"
    assert [name for name in names if name.startswith(f"{shipped}/gdb/") and name.endswith(".py")]
    assert f"{case}/case.toml" in names
    assert f"{case}/program.py" in names
    assert {"postmortem/report/machine/report.schema.json", "postmortem/py.typed"} <= set(names)
    pages = {name.rsplit("/", 1)[1] for name in names if name.endswith(".1") and "/data/share/man/man1/" in name}
    assert pages == {"postmortem.1", *(f"postmortem-{command}.1" for command in group.commands)}
    assert "postmortem/report/machine/report.schema.json" in names
    assets = ROOT / "postmortem" / "report" / "assets"
    wanted = {str(path.relative_to(ROOT)) for path in assets.rglob("*") if path.is_file()}
    assert len(wanted) > 15
    assert wanted <= set(names)
    assert not [name for name in names if name.startswith(("tests/", "corpora/", "gdb/"))]


def test_the_wheel_brings_a_command_that_starts_fast(wheel: Path, tmp_path: Path) -> None:
    """A script of ours, which every installer makes runnable: what pip writes for an entry point imports `re`."""
    done = run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    assert done.returncode == 0, done.stderr
    python = tmp_path / "venv" / "bin" / "python"
    done = run(
        sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index", str(wheel)
    )
    assert done.returncode == 0, done.stderr
    command = tmp_path / "venv" / "bin" / "postmortem"
    done = run(str(command), "capture", "-t", "60", "--", "echo", "started", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "started\n", "")
    assert "import re" not in command.read_text()


def test_the_installed_wheel_finds_its_demo(wheel: Path, tmp_path: Path) -> None:
    """Unpacked far from the checkout, the package lists the demo from its own copy."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = "import postmortem, postmortem.demo as d; print(postmortem.__file__); print([c.name for c in d.cases()])"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    where, listed = done.stdout.splitlines()
    assert where.startswith(str(tmp_path))
    assert listed == "['gil-thrash/websocket-testclient']"


def test_python_dash_m_works() -> None:
    """`python -m postmortem --help` lists the commands, and each of them can be called so."""
    for name in group.commands:
        done = run(sys.executable, "-m", "postmortem", name, "--help")
        assert done.returncode == 0 and f"postmortem {name} " in done.stdout, done.stderr
    done = run(sys.executable, "-m", "postmortem", "--help")
    assert done.returncode == 0, done.stderr
    assert set(group.commands) <= set(re.findall(r"^  (\w+)  ", done.stdout, re.M))


def test_the_readme_names_commands_that_exist() -> None:
    """Each `postmortem COMMAND` and each `make TARGET` in the README's code can be typed."""
    readme = (ROOT / "README.md").read_text("utf-8")
    commands = set(re.findall(r"postmortem (\w+)", _code(readme)))
    assert {"capture", "analyze", "demo"} <= commands <= set(group.commands)
    targets = set(re.findall(r"make (\w+)", _code(readme)))
    made = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    assert {"demo", "test"} <= targets <= made


def test_the_readme_tells_of_every_pattern() -> None:
    """Its table has the patterns that the engine runs, no more and no fewer."""
    section = (ROOT / "README.md").read_text("utf-8").split("## What it recognises")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", section, re.M)) == {pattern.id for pattern in all_patterns()}


def test_ci_runs_the_readmes_test_command() -> None:
    """One command for people and machines."""
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "set -euo pipefail" in script
    assert script.rstrip().endswith("make test")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def _code(markdown: str) -> str:
    """The command lines of a README: in shell blocks, and in backticks within the text."""
    blocks: List[str] = re.findall(r"^```(?:sh|console)\n(.*?)^```", markdown, re.M | re.S)
    without = re.sub(r"^```.*?^```", "", markdown, flags=re.M | re.S)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", without)])
