"""A machine that has nothing left: disk, descriptors, memory, processes, streams. What can be had is had, in one sentence
what cannot, in bounded time, and the tree is ended all the same."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import pytest

from postmortem.memory.elfcore import ElfCore
from tests.support import required
from tests.support.capturing import HANG_S, Captured, environment, finished, state
from tests.support.mounts import Mounts, allowed, mounted

pytestmark = pytest.mark.live
mounting = pytest.mark.skipif(not allowed(), reason="nothing may be mounted here (root, unshare -m)")

WAITS = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
#: A heap that a small disk does not hold.
LARGE = "import os, time; heap = os.urandom(1 << 20) * 40; print(os.getpid(), flush=True); time.sleep(600)"


def postmortem(
    *words: str, where: Optional[Mounts] = None, limits: Optional[Callable[[], None]] = None, **settings: Any
) -> subprocess.Popen[str]:
    """The whole of it: the capture and its diagnosis."""
    command = [sys.executable, "-m", "postmortem", *words]
    settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    environ = settings.pop("env", environment())
    return subprocess.Popen(
        where.inside(command) if where else command,
        env=environ,
        text=True,
        preexec_fn=limits,  # noqa: PLW1509 - there are no threads here
        **settings,
    )


def capture(bundle: Path, code: str, *options: str, seen: Optional[Path] = None, **settings: Any) -> Captured:
    words = ["capture", "-t", "1", "--observe", "0.2", "-o", str(bundle), *options, "--", sys.executable, "-c", code]
    return finished(postmortem(*words, **settings), seen or bundle)


def assert_ended(done: Captured) -> None:
    """Status 124, no traceback, the command gone."""
    assert done.status == 124, done.stderr
    assert "Traceback" not in done.stderr
    assert state(int(done.stdout.split()[0])) is None


# ---------------------------------------------------------------------- the disk


@mounting
def test_a_disk_that_is_full_from_the_start(tmp_path: Path) -> None:
    """The bundle goes elsewhere, and stderr says where; the report is there."""
    small, temporary = tmp_path / "small", tmp_path / "temporary"
    small.mkdir()
    temporary.mkdir()
    fill = f"mount -t tmpfs -o size=64k none {small}; dd if=/dev/zero of={small}/fill bs=4k 2>/dev/null || true"
    with mounted(fill) as where:
        done = capture(small / "bundle", WAITS, where=where, env=environment(TMPDIR=str(temporary)))
        left = sorted(path.name for path in where.seen(small).iterdir())
    assert_ended(done)
    (elsewhere,) = temporary.glob("postmortem-*/postmortem-*")
    assert f"into {elsewhere}" in done.stderr
    assert json.loads((elsewhere / "report.json").read_bytes())["processes"]
    assert left == ["fill"]


@mounting
def test_every_disk_is_full(tmp_path: Path) -> None:
    """No bundle can be had at all: that is 125, in one sentence, and the tree is ended."""
    small = tmp_path / "small"
    small.mkdir()
    fill = f"mount -t tmpfs -o size=64k none {small}; dd if=/dev/zero of={small}/fill bs=4k 2>/dev/null || true"
    with mounted(fill) as where:
        done = capture(small / "bundle", WAITS, where=where, env=environment(TMPDIR=str(small)), cwd=str(tmp_path))
    if done.status == 124:  # tempfile has fallen back on /tmp, which is no small disk
        assert "into /tmp/" in done.stderr
        shutil.rmtree(Path(done.stderr.split("into ")[1].split("\n")[0]).parent)
    else:
        assert done.status == 125
        assert "cannot be written" in done.stderr
    assert state(int(done.stdout.split()[0])) is None


@mounting
@pytest.mark.parametrize("foreseen", [True, False])
def test_a_disk_that_fills_up_with_the_cores(tmp_path: Path, foreseen: bool) -> None:
    """What was written before stays and is read, the report is shown, the tree is ended."""
    small = tmp_path / "small"
    small.mkdir()
    driver = "" if foreseen else "from postmortem.foreign.held import Folder\nFolder.free = 1 << 40\n"
    driver += "import sys; from postmortem.__main__ import capture; sys.exit(capture(sys.argv[1:]))"
    with mounted(f"mount -t tmpfs -o size=20m none {small}") as where:
        seen = where.seen(small / "bundle")
        words = [
            sys.executable,
            "-c",
            driver,
            "-t",
            "1",
            "--observe",
            "0.2",
            "--core",
            "sparse",
            "-o",
            str(small / "bundle"),
        ]
        process = subprocess.Popen(
            where.inside([*words, "--", sys.executable, "-c", LARGE]),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        done = finished(process, seen)
        assert_ended(done)
        failed = [step for step in done.manifest["steps"] if not step["ok"]]
        assert any("MB are free" in step["error"] if foreseen else "No space" in step["error"] for step in failed), (
            failed
        )
        assert done.manifest["steps"][-1]["step"] == "end"
        again = postmortem("analyze", "-f", "json", str(small / "bundle"), where=where)
        out, err = again.communicate(timeout=HANG_S)
        assert again.returncode == 0, err
        assert [process["pid"] for process in json.loads(out)["processes"]] == [done.root]
        assert not list(seen.rglob("*.part"))
        assert (seen / "report.json").exists()
    assert "What could not be read" in done.stderr


@mounting
def test_a_disk_that_the_program_fills_meanwhile(tmp_path: Path) -> None:
    """Not a block is left after the bundle was begun: what is there is kept, and the report is still shown."""
    small = tmp_path / "small"
    small.mkdir()
    code = f"""
import os, time
print(os.getpid(), flush=True)
while not os.path.exists({str(small / "bundle" / "raw")!r}): time.sleep(0.001)
with open({str(small / "fill")!r}, "wb", buffering=0) as stream:
    while True:
        try:
            stream.write(bytes(1 << 16))
        except OSError:
            try:
                stream.write(bytes(4096))
            except OSError:
                time.sleep(0.01)
"""
    with mounted(f"mount -t tmpfs -o size=20m none {small}") as where:
        done = capture(small / "bundle", code, where=where, seen=where.seen(small / "bundle"))
        assert_ended(done)
        # room that py-spy's files gave back may have been enough for the manifest, and not for the reports
        incomplete = "is not complete: No space left", "cannot be written into the bundle: No space left"
        assert any(words in done.stderr for words in incomplete), done.stderr
        assert f"Process {done.root}" in done.stderr  # the report
        assert done.manifest["root_pid"] > 0


@mounting
def test_a_read_only_folder(tmp_path: Path) -> None:
    """As -o it is refused before the command has run for nothing; as working directory it is gone round."""
    folder, temporary = tmp_path / "ro", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    with mounted(f"mount --bind {folder} {folder}; mount -o remount,ro,bind {folder}") as where:
        refused = capture(folder / "bundle", WAITS, where=where)
        words = in_shell(f'cd {folder}; exec "$@"', WAITS)
        environ = environment(TMPDIR=str(temporary))
        process = subprocess.Popen(
            where.inside(words), env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        done = finished(process, tmp_path)
    assert (refused.status, refused.stdout) == (125, "")
    assert "nothing can be written" in refused.stderr
    assert_ended(done)
    assert list(temporary.glob("postmortem-*/postmortem-*/report.json"))


def in_shell(script: str, code: str, *options: str) -> List[str]:
    """Return the words of a shell's ``script`` that starts a short capture of a Python program, with ``exec "$@"``."""
    command = [sys.executable, "-m", "postmortem", "capture", "-t", "1", "--observe", "0.2", *options]
    return ["sh", "-c", script, "sh", *command, "--", sys.executable, "-c", code]


@pytest.mark.parametrize("value", ["/nowhere/at/all", ""])
def test_no_folder_for_temporary_files(tmp_path: Path, value: str) -> None:
    """TMPDIR may say what it likes."""
    done = capture(tmp_path / "bundle", WAITS, env=environment(TMPDIR=value))
    assert_ended(done)
    assert all(step["ok"] for step in done.manifest["steps"]), done.manifest["steps"]
    assert (tmp_path / "bundle" / "report.json").exists()


# ---------------------------------------------------------------------- descriptors, memory, processes


def limited(kind: int, value: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (value, value))


def test_postmortem_has_few_descriptors(tmp_path: Path) -> None:
    """With 20 of them one process is captured whole."""
    done = capture(tmp_path / "bundle", WAITS, limits=limited(resource.RLIMIT_NOFILE, 20))
    assert_ended(done)
    assert done.core().exists()
    assert done.raw(f"proc/{done.root}/window.json")["threads"]


def test_fewer_descriptors_than_the_tree_needs(tmp_path: Path) -> None:
    """Some processes have cores, the others a sentence with a remedy; all have their facts."""
    child = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    code = f"import subprocess, sys\nfor _ in range(9): subprocess.Popen({child})\n{WAITS}"
    done = capture(tmp_path / "bundle", code, limits=limited(resource.RLIMIT_NOFILE, 20))
    assert_ended(done)
    cores = {step["subject"]: step for step in done.steps("core")}
    refused = [step for step in cores.values() if not step["ok"]]
    assert 0 < len(refused) < 10
    assert all("may open at most 20 files" in step["error"] and "ulimit -n" in step["remedy"] for step in refused)
    assert len(done.manifest["processes"]) == 10
    assert done.core().exists()


def test_the_target_has_used_up_its_descriptors(tmp_path: Path) -> None:
    """Nothing of the capture needs one in the target."""
    code = f"""
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
try:
    while True: os.dup(1)
except OSError:
    pass
{WAITS.replace("print", "os.write(1, b'') or print")}
"""
    done = capture(tmp_path / "bundle", code)
    assert_ended(done)
    assert len(done.raw(f"proc/{done.root}/process.json")["fds"]) == 50
    assert done.core().exists()


@pytest.mark.parametrize("megabytes", [60, 120, 250])
def test_postmortem_has_little_memory(tmp_path: Path, megabytes: int) -> None:
    """The capture itself needs little; where the diagnosis needs more, the capture is kept."""
    done = capture(tmp_path / "bundle", WAITS, limits=limited(resource.RLIMIT_AS, megabytes << 20))
    assert_ended(done)
    assert done.raw(f"proc/{done.root}/process.json")["argv"]
    again = postmortem("analyze", str(tmp_path / "bundle"))
    _out, err = again.communicate(timeout=HANG_S)
    assert again.returncode == 0, err


def test_no_process_may_be_started(tmp_path: Path) -> None:
    """RLIMIT_NPROC is used up: neither py-spy nor gdb nor a thread can be begun. Facts and core are there all the same."""
    if os.geteuid() != 0:
        pytest.skip("the limit does not hold for root, and another user is needed")
    setpriv = required.program("setpriv")
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent != Path("/tmp") and parent.owner() == "root" and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    code = """
import os, resource, time
print(os.getpid(), flush=True)
resource.prlimit(os.getppid(), resource.RLIMIT_NPROC, (1, 1))
time.sleep(600)
"""
    words = [
        setpriv,
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        python,
        "-m",
        "postmortem",
        "capture",
        "-t",
        "1",
        "--observe",
        "0.2",
        "-o",
        str(tmp_path / "bundle"),
        "--",
        python,
        "-c",
        code,
    ]
    process = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    done = finished(process, tmp_path / "bundle")
    assert_ended(done)
    assert done.raw(f"proc/{done.root}/window.json")["threads"]
    assert done.core().exists()


# ---------------------------------------------------------------------- streams


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_streams(tmp_path: Path, closed: str) -> None:
    """Whichever are closed: no file of ours takes their place in the command, and the bundle is whole."""
    code = "import os, time; open('fds', 'w').write(repr(sorted(os.listdir('/proc/self/fd')))); time.sleep(600)"
    script = f'exec "$@" {closed}'
    words = in_shell(script, code, "-o", "bundle")
    process = subprocess.Popen(
        words,
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    done = finished(process, tmp_path / "bundle")
    assert done.status == 124, done.stderr
    assert "Traceback" not in done.stderr
    assert ElfCore(str(done.core())).threads
    for name in ("report.json", "manifest.json"):
        assert isinstance(json.loads((tmp_path / "bundle" / name).read_bytes()), dict)
    links: Dict[str, str] = done.raw(f"proc/{done.root}/process.json")["fds"]
    gone: List[str] = [part[0] for part in closed.split()]
    assert not set(gone) & set(links), links
