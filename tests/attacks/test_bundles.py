"""Directories of other users: whoever may write to a bundle's parent directory chooses neither where root writes, nor what it
reads back, nor what a report shows."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Iterator, List

import pytest

from postmortem.bundle import Bundle
from postmortem.errors import CaptureFailed
from tests.support.capturing import ROOT, Captured, capture, environment, start, wait_until

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and another user beside it")]

ATTACKER = 65534
SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A directory of another user's, below directories that everybody may enter."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, ATTACKER, ATTACKER)
    for above in folder.parents:
        if above.stat().st_uid == 0 and str(above).startswith(str(tmp_path.parents[2])) and above != Path("/tmp"):
            above.chmod(above.stat().st_mode | 0o055)
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A directory of root's, in which nothing may appear."""
    folder = tmp_path / "victim"
    folder.mkdir(mode=0o755)
    return folder


@contextlib.contextmanager
def attacker(program: str, *words: str) -> Iterator[None]:
    """A program of the other user that runs until the block ends; it has begun by then."""
    code = f"import os, sys\nos.setgroups([]); os.setresgid({ATTACKER}, {ATTACKER}, {ATTACKER})\n"
    code += f"os.setresuid({ATTACKER}, {ATTACKER}, {ATTACKER})\nprint('up', flush=True)\n{program}"
    process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def files_of(folder: Path) -> List[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


SWAPPER = """
folder, victim = sys.argv[1:]
number = 0
while True:
    for name in ("bundle", "bundle/raw", "bundle/raw/proc"):
        number += 1
        try:
            os.rename(f"{folder}/{name}", f"{folder}/taken-{number}")
            os.symlink(victim, f"{folder}/{name}")
            os.unlink(f"{folder}/{name}")
            os.rename(f"{folder}/taken-{number}", f"{folder}/{name}")
        except OSError:
            pass
"""


def bundles_in(folder: Path) -> List[Path]:
    """Every directory with a manifest, whatever it is called by now."""
    return sorted({path.parent for path in folder.rglob("manifest.json")})


def test_a_bundle_that_is_swapped_for_a_link_leads_nowhere(theirs: Path, victim: Path) -> None:
    """Its parent's owner renames it and lays links in its place, again and again: everything is in the directory that was made,
    and nothing elsewhere."""
    with attacker(SWAPPER, str(theirs), str(victim)):
        for _round in range(3):
            done = capture(theirs, "--", *SLEEPER, timeout=0.3, observe=0.1)
            assert done.status in (124, 125), done.stderr
    assert files_of(victim) == []
    for bundle in bundles_in(theirs):
        assert stat.S_IMODE(bundle.stat().st_mode) == 0o700
        assert bundle.stat().st_uid == 0
        assert json.loads((bundle / "manifest.json").read_bytes())["schema"] == "postmortem.manifest/1"


def test_a_bundle_in_a_directory_of_another_user_is_whole(theirs: Path) -> None:
    """A root job in a workspace of uid 1001 works on: what was made there and is held is ours."""
    done = capture(theirs, "--", *SLEEPER)
    assert done.status == 124
    assert done.bundle.stat().st_uid == 0
    assert stat.S_IMODE(done.bundle.stat().st_mode) == 0o700
    assert done.core().is_file()


def test_an_empty_directory_of_another_user_is_not_used(theirs: Path) -> None:
    """It would stay theirs; the command has not run for nothing."""
    (theirs / "bundle").mkdir()
    os.chown(theirs / "bundle", ATTACKER, ATTACKER)
    done = capture(theirs, "--", *SLEEPER)
    assert done.status == 125
    assert f"it belongs to user {ATTACKER}; choose another place with -o DIR" in done.stderr
    assert files_of(theirs / "bundle") == []


def test_an_empty_directory_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    """Nor one of ours that is open to all."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b").chmod(0o777)
    with pytest.raises(CaptureFailed, match="other users may write to it"):
        Bundle.create(tmp_path / "b")


def test_a_link_of_another_user_on_the_way_is_not_followed(theirs: Path, victim: Path) -> None:
    """`-o out/bundle` where `out` leads to a directory of root's; a link of root's own is followed."""
    (theirs / "out").symlink_to(victim)
    os.lchown(theirs / "out", ATTACKER, ATTACKER)
    with pytest.raises(CaptureFailed, match="symbolic link of user"):
        Bundle.create(theirs / "out" / "bundle")
    assert files_of(victim) == []
    (theirs / "ours").symlink_to(victim)
    Bundle.create(theirs / "ours" / "bundle").close()
    assert (victim / "bundle/manifest.json").is_file()


def test_a_default_name_that_was_guessed(theirs: Path, victim: Path) -> None:
    """The name of `--pid` can be foretold: directories and links that wait there are passed over."""
    target = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        wait_until(lambda: Path(f"/proc/{target.pid}/comm").read_text().startswith("python"), "the target runs python")
        name = Path(f"/proc/{target.pid}/comm").read_text().strip()
        for seconds in range(-1, 30):
            at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + seconds))
            guessed = theirs / f"postmortem-{name}-{at}-{target.pid}"
            if seconds % 2:
                guessed.symlink_to(victim)
                os.lchown(guessed, ATTACKER, ATTACKER)
            else:
                guessed.mkdir()
                os.chown(guessed, ATTACKER, ATTACKER)
        process = start("--pid", str(target.pid), "--observe", "0.1", cwd=theirs)
        _out, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert files_of(victim) == []
        (bundle,) = bundles_in(theirs)
        assert bundle.name.endswith(f"-{target.pid}.2")
        assert bundle.stat().st_uid == 0
    finally:
        target.kill()
        target.wait()


@pytest.mark.parametrize("kind", ["link", "file of another user"])
def test_a_report_goes_through_no_link_and_into_nobodys_file(theirs: Path, victim: Path, kind: str) -> None:
    """`--report FILE` as root: one sentence, and the file is as it was."""
    held = victim / "passwd"
    held.write_text("root:x:0:0")
    report = theirs / "report.json"
    if kind == "link":
        report.symlink_to(held)
    else:
        report.write_text("mine")
        os.chown(report, ATTACKER, ATTACKER)
    done = analyze(recorded(victim), "--report", str(report))
    assert done.returncode == 1
    assert "could not be written: it " in done.stderr
    assert held.read_text() == "root:x:0:0"
    assert kind == "link" or report.read_text() == "mine"


def test_a_report_is_private_and_replaces_our_own(theirs: Path, victim: Path) -> None:
    """Mode 0600, also over a file that everybody could read; a FIFO is written to as it is."""
    report = theirs / "report.json"
    report.write_text("old")
    done = analyze(recorded(victim), "--report", str(report))
    assert done.returncode == 0, done.stderr
    assert json.loads(report.read_bytes())["schema"] == "postmortem.report/1"
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    os.mkfifo(theirs / "pipe.json")
    read: List[bytes] = []
    reader = threading.Thread(target=lambda: read.append((theirs / "pipe.json").read_bytes()))
    reader.start()
    done = analyze(recorded(victim), "--report", str(theirs / "pipe.json"))
    reader.join(60)
    assert done.returncode == 0, done.stderr
    assert json.loads(read[0])["schema"] == "postmortem.report/1"


def test_a_home_of_another_user_gets_no_cache(theirs: Path, victim: Path) -> None:
    """`sudo` keeps HOME: what lies there is the user's to change, and root's gdb would read it."""
    done = analyze(recorded(victim), HOME=str(theirs), XDG_CACHE_HOME="")
    assert done.returncode == 0, done.stderr
    assert files_of(theirs) == []


def test_terminated_while_an_archive_is_read_leaves_nothing(tmp_path: Path) -> None:
    """TERM, HUP, INT, and a child that is killed: the folder that it was unpacked into goes."""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    archive = tmp_path / "big.zip"
    with zipfile.ZipFile(str(archive), "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("manifest.json", "{}")
        with made.open("raw/cores/1.core", "w", force_zip64=True) as member:
            for _block in range(3000):
                member.write(bytes(1 << 20))
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        process = subprocess.Popen(
            [sys.executable, "-m", "postmortem", "analyze", str(archive)],
            cwd=ROOT,
            env=environment(TMPDIR=str(scratch)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_until(lambda: any(scratch.rglob(".1.core.part")), "it is being unpacked")
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == (130 if number == signal.SIGINT else -number)
        assert files_of(scratch) == []


def recorded(folder: Path) -> Path:
    """A small bundle with evidence."""
    bundle = folder / "recorded"
    if not bundle.exists():
        bundle.mkdir(mode=0o700)
        (bundle / "manifest.json").write_text('{"schema": "postmortem.manifest/1", "steps": [], "timings": {}}')
        (bundle / "raw").mkdir()
    return bundle


def analyze(bundle: Path, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "postmortem", "analyze", "-f", "json", str(bundle), *words],
        cwd=ROOT,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


# ---------------------------------------------------------------------- children that do not come back

CRASHING = """
import os, signal, sys, time
from postmortem.__main__ import capture
def diagnose(bundle, **_):
    if {number}:
        os.kill(os.getpid(), {number})
    time.sleep(600)
sys.exit(capture(sys.argv[1:], diagnose))
"""


@pytest.mark.parametrize("number", [signal.SIGBUS, signal.SIGSEGV, signal.SIGKILL], ids=lambda number: number.name)
def test_whatever_ends_the_diagnosis_the_tree_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """A codec's crash, a truncated library, the OOM killer: status 124, no process left, the bundle kept, one sentence."""
    done = capture(tmp_path, "--", *SLEEPER, driver=CRASHING.format(number=int(number)))
    assert done.status == 124
    assert f"the diagnosis was ended by {number.name}" in done.stderr
    assert f"the capture is kept: postmortem analyze {done.bundle}" in done.stderr
    assert not Path(f"/proc/{done.root}").exists()
    assert done.core().is_file()


def test_a_diagnosis_without_end_is_ended(tmp_path: Path) -> None:
    """Some time after its budget it is killed; what was captured is kept."""
    driver = "import postmortem.capture.run.lifecycle as c\nc._LEAST_S = 0.5\n" + CRASHING.format(number=0)
    done: Captured = capture(tmp_path, "--budget", "1", "--", *SLEEPER, driver=driver)
    assert done.status == 124
    assert "the diagnosis did not finish in time; the capture is kept" in done.stderr
