"""Processes of other users, set-user-id ones and hidden ones under ``capture``: each is named, with who and why."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator, Sequence

import pytest

from ..support import required
from ..support.capturing import DRIVER, ROOT, Captured, finished
from ..support.targets import SLEEPER

pytestmark = pytest.mark.live

PYTHON = "/usr/bin/python3"  # one that every user may run
NOBODY = ["--reuid=65534", "--regid=65534", "--clear-groups"]
needs_root = pytest.mark.skipif(os.geteuid() != 0 or not os.access(PYTHON, os.X_OK), reason=f"needs root, and {PYTHON}")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that other users reach too."""
    with tempfile.TemporaryDirectory(prefix="postmortem-test-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        shutil.copytree(
            ROOT / "postmortem", folder / "lib" / "postmortem", ignore=shutil.ignore_patterns("__pycache__")
        )
        yield folder


def as_nobody(folder: Path, *words: str, before: Sequence[str] = ()) -> Captured:
    """A capture by a user without rights."""
    bundle = folder / "bundle"
    options = ["-t", "1", "--observe", "0.2", "-o", str(bundle), "--", *words]
    command = [*before, required.program("setpriv"), *NOBODY, PYTHON, "-B", "-c", DRIVER, *options]
    settings = {"PYTHONPATH": str(folder / "lib"), "HOME": str(folder)}
    process = subprocess.Popen(
        command,
        env={**os.environ, **settings},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return finished(process, bundle)


@needs_root
def test_a_set_user_id_child_is_a_gap_in_plain_words(open_folder: Path) -> None:
    """It is listed with what every user may see; why there is no more of it, and what helps, is said. The rest is whole."""
    program = open_folder / "sleeper"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    program.chmod(0o4755)
    done = as_nobody(open_folder, "sh", "-c", f"{program} 600 & exec {PYTHON} -c '{SLEEPER}'")
    assert done.status == 124, done.stderr
    child = next(pid for pid in done.manifest["processes"] if pid != done.root)
    try:
        facts = done.raw(f"proc/{child}/process.json")
        assert (facts["comm"], facts["ppid"], facts["state"]) == ("sleeper", done.root, "S")
        assert facts["maps"] is None and facts["fds"] is None
        said = [step for step in done.steps("core") if step["subject"] == f"process {child}" and not step["ok"]]
        assert len(said) == 1
        assert "set-user-id" in said[0]["error"] and "(sleeper)" in said[0]["error"]
        assert "sudo" in said[0]["remedy"]
        window = done.raw(f"proc/{child}/window.json")["threads"][str(child)]
        assert window["states"].get("S") and window["voluntary_switches"] is not None
        assert window["read_calls"] is None
        assert done.core().exists()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


@needs_root
def test_a_child_that_proc_hides_is_named_all_the_same(open_folder: Path) -> None:
    """hidepid=2: the kernel still tells its parent's children."""
    program = open_folder / "sleeper"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    program.chmod(0o4755)
    mount = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    if subprocess.run(["unshare", "-m", "sh", "-c", mount, "sh", "true"], check=False, capture_output=True).returncode:
        pytest.skip("/proc cannot be mounted here")
    before = ["unshare", "-m", "sh", "-c", mount, "sh"]
    done = as_nobody(open_folder, "sh", "-c", f"{program} 600 & exec {PYTHON} -c '{SLEEPER}'", before=before)
    assert done.status == 124, done.stderr
    hidden = [step for step in done.steps("processes") if not step["ok"]]
    child = int(hidden[0]["subject"].split()[1])
    try:
        assert "hides" in hidden[0]["error"] and "hidepid=0" in hidden[0]["remedy"]
        assert done.raw(f"proc/{child}/process.json")["ppid"] == done.root
        assert done.core().exists()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
