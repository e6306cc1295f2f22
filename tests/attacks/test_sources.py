"""Source files that the target chooses: what its user may not read is in no report, and what never answers holds nobody up."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from ..support.silentfiles import needs_fuse, silent_file_system
from .bundles import SECRET, analyzed, lines, postmortem, reasons, secret, write_bundle, zipped
from .bundles import running as program_running

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and another user beside it")]

OTHER = 65534
PYTHON = "/usr/bin/python3"  # one that every user may run
PROGRAM = """import time
def work():
    print("up", flush=True)
    time.sleep(600)  # OWN-LINE
work()
"""


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A directory that every user may enter: what lies below pytest's own, a run of it beside this one closes again."""
    with tempfile.TemporaryDirectory(prefix="postmortem-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def theirs(open_path: Path) -> Path:
    """A directory of another user's."""
    folder = open_path / "theirs"
    folder.mkdir()
    os.chown(folder, OTHER, OTHER)
    return folder


@contextlib.contextmanager
def running(folder: Path, **ids: Any) -> Iterator[int]:
    """app.py in a directory, as the user ``user`` and in the group ``group``."""
    app = folder / "app.py"
    app.write_text(PROGRAM)
    with program_running([PYTHON, str(app)], cwd=folder, **ids) as pid:
        yield pid


def captured(pid: int, bundle: Path) -> Path:
    done = postmortem("capture", "--pid", str(pid), "--observe", "0.3", "-o", str(bundle))
    assert done.returncode == 0, done.stderr
    return bundle


def told(bundle: Path) -> str:
    """All that a bundle says, but for the memory of its processes."""
    paths = (path for path in bundle.rglob("*") if path.is_file() and path.suffix != ".core")
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in paths)


AS_OTHER = {"user": OTHER, "group": OTHER, "extra_groups": []}


@pytest.mark.parametrize("name", ["secret.py", "secret.txt"])
def test_a_link_to_what_the_user_may_not_read(open_path: Path, theirs: Path, name: str) -> None:
    """app.py leads to a file of root's by the time it is captured: neither the capture, nor an analysis of the bundle or of the
    core, nor the bundle for others shows a line of it; the report says why there is none."""
    hidden = secret(open_path / name, 0o600 if name == "secret.py" else 0o644)
    with running(theirs, **AS_OTHER) as pid:
        (theirs / "app.py").unlink()
        (theirs / "app.py").symlink_to(hidden)
        bundle = captured(pid, open_path / "bundle")
    assert SECRET not in told(bundle)
    why = "may not read it" if name == "secret.py" else "not Python source"
    gaps = json.loads((bundle / "report.json").read_bytes())["gaps"]
    assert [gap["source"] for gap in gaps if why in gap["reason"] and "app.py" in gap["reason"]] == ["files"]
    stripped = open_path / "stripped.zip"
    done = postmortem("report", str(bundle), "--strip", "-o", str(stripped))
    assert done.returncode == 0, done.stderr
    shutil.unpack_archive(stripped, open_path / "stripped")
    assert SECRET not in told(open_path / "stripped")
    (bundle / "evidence.json").unlink()
    assert SECRET not in json.dumps(analyzed(bundle))
    core = shutil.copy(bundle / "raw" / "cores" / f"{pid}.core", open_path / "lone.core")
    assert SECRET not in json.dumps(analyzed(Path(core)))  # root's file, but of another user's process
    os.chown(core, OTHER, OTHER)
    assert SECRET not in json.dumps(analyzed(Path(core)))


def test_what_the_user_may_read_is_shown(open_path: Path, theirs: Path) -> None:
    """Its own source, in a directory that nobody else may enter; now, and out of the bundle later on."""
    theirs.chmod(0o700)
    with running(theirs, **AS_OTHER) as pid:
        bundle = captured(pid, open_path / "bundle")
    assert "OWN-LINE" in (bundle / "report.json").read_text()
    (bundle / "evidence.json").unlink()
    assert "OWN-LINE" in json.dumps(analyzed(bundle))


def test_roots_own_process_in_the_directory_of_another_user(open_path: Path, theirs: Path) -> None:
    """It may read everything, and so may we for it: `sudo python app.py` in a directory of mode 0700."""
    theirs.chmod(0o700)
    with running(theirs) as pid:
        os.chown(theirs / "app.py", OTHER, OTHER)
        (theirs / "app.py").chmod(0o600)
        bundle = captured(pid, open_path / "bundle")
    assert "OWN-LINE" in (bundle / "report.json").read_text()


def test_a_process_with_the_rights_of_two_users(open_path: Path, theirs: Path) -> None:
    """Its effective user is root, its real one is not: no source is read, whosever it is, and the report says why."""
    (theirs / "app.py").write_text(PROGRAM)
    start = "import os, sys; os.setresuid(65534, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", start, PYTHON, str(theirs / "app.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            (theirs / "app.py").unlink()
            (theirs / "app.py").symlink_to(secret(open_path / "secret.py"))
            bundle = captured(process.pid, open_path / "bundle")
        finally:
            process.kill()
    assert SECRET not in told(bundle)
    gaps = json.loads((bundle / "report.json").read_bytes())["gaps"]
    assert any("rights of several users" in gap["reason"] for gap in gaps), gaps


# ---------------------------------------------------------------------- bundles of others


def chown_all(folder: Path, user: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def test_a_bundle_of_another_user(open_path: Path) -> None:
    """It names a source of root's, and says that root ran the process: the owner of the bundle decides, also of an archive."""
    hidden = secret(open_path / "secret.py")
    bundle = write_bundle(open_path / "bundle", str(hidden), rights=[0, 0], reads_all=True)
    assert SECRET in lines(analyzed(bundle))  # as long as it is ours
    archive = zipped(bundle, open_path / "bundle.zip")
    os.chown(archive, OTHER, OTHER)
    assert SECRET not in lines(analyzed(archive))
    chown_all(bundle, OTHER)
    report = analyzed(bundle)
    assert SECRET not in lines(report)
    assert any("may not read it" in why for why in reasons(report))


@pytest.mark.parametrize(
    "rights", [None, [OTHER, OTHER], "0", {"uid": 0}, [[0], {}], [0], [0, -1], [True, True], [1 << 40, 0]]
)
def test_a_bundle_of_ours_with_the_rights_that_were_noted(open_path: Path, rights: Any) -> None:
    """Another user's, those of several (None), or nonsense: none of it lets root's file be read."""
    hidden = secret(open_path / "secret.py")
    bundle = write_bundle(open_path / "bundle", str(hidden), rights=rights)
    report = analyzed(bundle)
    assert SECRET not in lines(report)
    assert any(str(hidden) in why for why in reasons(report))


@pytest.mark.parametrize("absolute", [True, False])
def test_links_in_the_kept_files_of_a_bundle(open_path: Path, absolute: bool) -> None:
    """No capture has made them: the file is missing, not what they lead to."""
    hidden = secret(open_path / "secret.py", 0o644)
    bundle = write_bundle(open_path / "bundle", "/srv/app.py", root=1)
    kept = bundle / "raw" / "roots" / "1" / "srv"
    kept.mkdir(parents=True)
    (kept / "app.py").symlink_to(hidden if absolute else os.path.relpath(hidden, kept))
    assert SECRET not in lines(analyzed(bundle))
    (kept / "app.py").unlink()
    kept.rmdir()
    (kept.parent / "srv").symlink_to(open_path)
    hidden.rename(open_path / "app.py")
    assert SECRET not in lines(analyzed(bundle))


def test_what_the_bundle_lacks_of_another_root_is_missing(open_path: Path) -> None:
    """This machine has a file of that name, which is another one."""
    here = secret(open_path / "app.py", 0o644)
    bundle = write_bundle(open_path / "bundle", str(here), root=1)
    assert SECRET not in lines(analyzed(bundle))
    (bundle / "raw" / "roots" / "1").mkdir(parents=True)
    assert SECRET not in lines(analyzed(bundle))
    kept = Path(f"{bundle}/raw/roots/1{here}")
    kept.parent.mkdir(parents=True)
    kept.write_text("one\ntheir_line = 2\nthree\n")
    assert "their_line" in lines(analyzed(bundle))


def test_a_sysroot_is_what_the_user_says(open_path: Path) -> None:
    """Links in it stay below it, absolute ones too."""
    secret(open_path / "app.py", 0o644)
    system = open_path / "sysroot"
    Path(f"{system}{open_path}").mkdir(parents=True)
    (system / "real.py").write_text("one\ntheir_line = 2\n")
    Path(f"{system}{open_path}/app.py").symlink_to("/real.py")
    bundle = write_bundle(open_path / "bundle", str(open_path / "app.py"), root=1)
    found = lines(analyzed(bundle, system))
    assert "their_line" in found and SECRET not in found


# ---------------------------------------------------------------------- what is no file


def as_fifo(path: Path) -> None:
    os.mkfifo(path)


def as_device(path: Path) -> None:
    os.mknod(path, 0o666 | 0o020000, os.makedev(1, 5))  # /dev/zero


def as_link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def as_link_to_proc(path: Path) -> None:
    path.symlink_to(f"/proc/{os.getpid()}/environ")


def as_magic_link(path: Path) -> None:
    """The directory of a process, by a link of the kernel's."""
    (path.parent / "there").mkdir()
    secret(path.parent / "there" / "x.py", 0o644)
    process = subprocess.Popen(["sleep", "600"], cwd=path.parent / "there")
    path.symlink_to(f"/proc/{process.pid}/cwd/x.py")


def as_loop(path: Path) -> None:
    path.symlink_to(path)


def as_folder(path: Path) -> None:
    path.mkdir()


def as_huge(path: Path) -> None:
    path.write_text("x = 1\n")
    os.truncate(path, 64 << 30)


@pytest.mark.parametrize(
    "made", [as_fifo, as_device, as_link_to_zero, as_link_to_proc, as_magic_link, as_loop, as_folder, as_huge]
)
def test_a_source_that_is_no_plain_file(open_path: Path, made: Callable[[Path], None], request: Any) -> None:
    """It is not waited for, not read without end, and not shown."""
    before = children()
    made(open_path / "app.py")
    request.addfinalizer(lambda: end(children() - before))
    report = analyzed(write_bundle(open_path / "bundle", str(open_path / "app.py")))
    assert SECRET not in lines(report)
    shown = report["processes"][0]["threads"][0]["stack"]
    assert [frame["line"] for frame in shown] == [2]


def children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def end(pids: set[int]) -> None:
    for pid in pids:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


# ---------------------------------------------------------------------- what never answers


@needs_fuse
def test_a_file_system_that_never_answers(open_path: Path) -> None:
    """The report comes, says which file did not answer, and no process of ours is left that another could wait for."""
    point = open_path / "silent"
    point.mkdir()
    bundle = write_bundle(open_path / "bundle", str(point / "app.py"))
    with silent_file_system(point):
        report = analyzed(bundle)
    assert any("did not answer" in why and "app.py" in why for why in reasons(report)), reasons(report)


@needs_fuse
def test_a_target_in_a_file_system_that_never_answers(open_path: Path, theirs: Path) -> None:
    """Mounted over its directory while it runs: it is captured all the same."""
    with running(theirs, **AS_OTHER) as pid, silent_file_system(theirs):
        bundle = captured(pid, open_path / "bundle")
    report = json.loads((bundle / "report.json").read_bytes())
    assert report["processes"][0]["threads"][0]["python"]
    assert any("did not answer" in gap["reason"] for gap in report["gaps"]), report["gaps"]


def test_a_core_that_another_user_has_compressed_or_reported(open_path: Path, theirs: Path) -> None:
    """What it is unpacked into is ours; whose words it holds is another matter. It says that root ran the process."""
    with running(theirs) as pid:
        (theirs / "app.py").unlink()
        (theirs / "app.py").symlink_to(secret(open_path / "secret.py"))
        bundle = captured(pid, open_path / "bundle")
    core = bundle / "raw" / "cores" / f"{pid}.core"
    packed, report = open_path / "core.gz", open_path / "app.crash"
    packed.write_bytes(gzip.compress(core.read_bytes(), 1))
    coded = base64.b64encode(packed.read_bytes())
    report.write_bytes(b"ProblemType: Crash\nExecutablePath: /usr/bin/python3\nCoreDump: base64\n " + coded + b"\n")
    for path in (packed, report):
        assert SECRET in lines(analyzed(path))  # as long as it is root's
        os.chown(path, OTHER, OTHER)
        assert SECRET not in lines(analyzed(path))
