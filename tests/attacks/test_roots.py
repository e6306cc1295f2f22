"""Processes of another root: names of theirs lead neither out of the bundle nor to files of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

from ..support.otherroots import Root, capture, other_root, running  # noqa: F401 - a fixture
from ..support.silentfiles import needs_fuse, silent_file_system
from .bundles import SECRET, analyzed, lines, reasons, secret
from .bundles import running as program_running

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and another user beside it")]

OTHER = 65534
NAMED = """import sys, time
name = sys.argv[1]
code = "def work():\\n    print('up', flush=True)\\n    time.sleep(600)\\nwork()\\n"
exec(compile(code, name, "exec"), {"time": time})
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that other users reach."""
    with tempfile.TemporaryDirectory(prefix="postmortem-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextlib.contextmanager
def confined(root: Root, *words: str, user: int = OTHER) -> Iterator[int]:
    """A process in a chroot, as another user: NAMED, at a line of the file that it calls ``words[0]``."""
    program = Path(f"{root.path}{root.program.parent}/named.py")
    program.write_text(NAMED)
    inside = ["env", f"LD_LIBRARY_PATH={root.home}/lib", f"PYTHONHOME={root.home}"]
    for folder in (root.path, *root.path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    command = ["chroot", f"--userspec={user}:{user}", "--groups=", str(root.path), str(root.python)]
    command += [str(root.program.parent / "named.py"), *words]
    with program_running([*inside, *command]) as pid:
        yield pid


def below(root: Root, name: Path, text: str, mode: int = 0o644) -> Path:
    path = Path(f"{root.path}{name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def captured(pid: int, bundle: Path) -> Dict[str, Any]:
    """The evidence of a capture."""
    done = capture("--pid", str(pid), "-o", str(bundle))
    assert done.returncode == 0, done.stderr
    found: Dict[str, Any] = json.loads((bundle / "evidence.json").read_bytes())
    return found


def test_a_name_that_leads_out_of_the_bundle(root: Root, place: Path) -> None:
    """A stack names /tmp/../../…/x.py, which its root has: nothing is written but below the bundle; what is kept lies under the
    plain name, and is shown."""
    victim = place / "victim"
    victim.mkdir()
    name = "/tmp/" + "../" * 30 + str(victim).lstrip("/") + "/x.py"
    below(root, victim / "x.py", "one\ntheir_line = 2\ntheir_line = 3\n")
    with confined(root, name) as pid:
        evidence = captured(pid, place / "bundle")
    assert list(victim.iterdir()) == []
    assert sorted(path.name for path in place.iterdir()) == ["bundle", "victim"]
    assert Path(f"{place}/bundle/raw/roots/1{victim}/x.py").read_text().startswith("one\n")
    assert evidence["sources"][name]["3"] == "their_line = 3"


@pytest.mark.parametrize(
    "name", ["relative/../../x.py", "", "..", "/..", "/x\n.py", "/" + "d/" * 400 + "x.py", "/%s.py" % ("n" * 250)]
)
def test_names_of_all_kinds(root: Root, place: Path, name: str) -> None:
    """They cost nothing but their own lines."""
    with confined(root, name) as pid:
        captured(pid, place / "bundle")
    assert [path.name for path in place.iterdir()] == ["bundle"]
    steps = json.loads((place / "bundle" / "manifest.json").read_bytes())["steps"]
    assert [step["error"] for step in steps if not step["ok"] and "inside postmortem" in str(step["error"])] == []


def test_two_names_of_one_plain_form(root: Root, place: Path) -> None:
    """/srv/now/../x.py is not /srv/x.py where `now` is a link: the lines of neither are shown for the other."""
    below(root, Path("/srv/x.py"), "one\nwrong_line = 2\nwrong_line = 3\n")
    below(root, Path("/releases/x.py"), "one\nright_line = 2\nright_line = 3\n")
    Path(f"{root.path}/releases/5").mkdir(exist_ok=True)
    link = Path(f"{root.path}/srv/now")
    link.unlink(missing_ok=True)
    link.symlink_to("/releases/5")
    with confined(root, "/srv/now/../x.py") as pid:
        evidence = captured(pid, place / "bundle")
    assert "wrong_line" not in lines(evidence)


def test_a_source_inside_that_the_user_may_not_read(root: Root, place: Path) -> None:
    """It is root's there as well; the link to it is the user's own. What the user may read is kept."""
    hidden = Path(f"{root.path}/root-only.py")
    secret(hidden)
    link = Path(f"{root.path}/link.py")
    link.unlink(missing_ok=True)
    link.symlink_to("/root-only.py")
    with confined(root, "/link.py") as pid:
        evidence = captured(pid, place / "bundle")
    kept = [path for path in (place / "bundle").rglob("*.py") if SECRET in path.read_text("utf-8", "replace")]
    assert kept == [] and SECRET not in json.dumps(evidence)
    assert any("may not read it" in why and "link.py" in why for why in reasons(evidence))
    assert list((place / "bundle" / "raw" / "roots").rglob("named.py"))


def test_links_inside_that_lead_to_this_machine(root: Root, place: Path) -> None:
    """The absolute name of a file of ours, and a way up: both end below their root."""
    hidden = secret(place / "ours.py", 0o644)
    for number, target in enumerate((str(hidden), "../" * 40 + str(hidden).lstrip("/"))):
        link = Path(f"{root.path}/out.py")
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        with confined(root, "/out.py") as pid:
            evidence = captured(pid, place / f"bundle-{number}")
        assert SECRET not in json.dumps(evidence)
        assert not list((place / f"bundle-{number}" / "raw" / "roots").rglob("out.py"))


@contextlib.contextmanager
def small_disk(point: Path, size: str) -> Iterator[None]:
    point.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(point)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(point)], check=True)


def test_little_room_on_the_disk(root: Root, place: Path) -> None:
    """Nothing is copied; what this machine has under the names of the container's program and sources is not shown instead,
    now and later on, and the report says what is missing."""
    with small_disk(place / "disk", "200m"):
        bundle = place / "disk" / "bundle"
        with running(root, "chroot") as pid:
            evidence = captured(pid, bundle)
        assert not (bundle / "raw" / "roots").exists()
        assert "not what runs there" not in json.dumps(evidence)
        assert any("no room" in gap["reason"] for gap in evidence["gaps"] if gap["source"] == "files")
        (bundle / "evidence.json").unlink()
        assert "not what runs there" not in lines(analyzed(bundle))


@needs_fuse
def test_a_root_that_never_answers(root: Root, place: Path) -> None:
    """A mount namespace with a silent file system over the sources: the capture comes to its end, and says so."""
    folder = Path(f"{root.path}/silent")
    folder.mkdir(exist_ok=True)
    with confined(root, "/silent/x.py") as pid, silent_file_system(folder):
        evidence = captured(pid, place / "bundle")
    assert any("did not answer" in gap["reason"] and "/silent/x.py" in gap["reason"] for gap in evidence["gaps"])
    shutil.rmtree(folder, ignore_errors=True)
