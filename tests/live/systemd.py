"""The real systemd-coredump, journald and coredumpctl, in a mount namespace of a test's own and without systemd as PID 1.

Nothing is installed, and the machine's core_pattern stays as it is: Debian's packages are unpacked below the cache folder,
journald and the socket of systemd-coredump are started by hand over a /run of their own, and what the kernel would do
with a crash is done by gdb, which stops a program at its fatal signal, writes its core, and hands it to systemd-coredump
while the process is still there to be asked for its name and unit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional

from postmortem.native import find_gdb

from ..support.mounts import Mounts, mounted
from ..support.required import lacking

_PACKAGES = ("systemd-coredump", "libdw1")  # with libdw it notes stacks too
_FOLDERS = ("usr/bin", "bin", "usr/lib/systemd", "lib/systemd")
_WAIT_S = 20.0
_MOUNTS = """
mount -t tmpfs none /run
mkdir /run/etc
cp -a /etc/. /run/etc
rm -rf /run/etc/machine-id /run/etc/systemd
mount --bind /run/etc /etc
echo 0123456789abcdef0123456789abcdef > /etc/machine-id
mkdir -p /run/packages /run/systemd/journal /run/systemd/journald.conf.d /run/systemd/coredump.conf.d /var/lib
mount -t tmpfs none /var/lib
mkdir -p /var/lib/systemd/coredump
{
    echo '[Journal]'
    echo Storage=volatile
    echo Audit=no
    echo ReadKMsg=no
    echo RuntimeMaxUse=1G
    echo RuntimeMaxFileSize=1G
} > /run/systemd/journald.conf.d/test.conf
mount --bind {packages} /run/packages
"""


class Unavailable(Exception):
    """This machine cannot run it; says why."""


def home() -> Path:
    """Where the packages are unpacked, shared by every checkout."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "postmortem" / "systemd-coredump"


def set_up() -> Path:
    """The folder with the unpacked packages. Raises Unavailable."""
    place = home()
    if (place / "usr/bin/coredumpctl").exists():
        return place
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed, which gets Debian's systemd-coredump")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=str(place.parent)) as scratch:
        folder = Path(scratch)
        (folder / "root").mkdir()
        for package in _downloaded(folder):
            _run(["dpkg", "-x", str(package), str(folder / "root")])
        with contextlib.suppress(OSError):  # somebody else was faster
            (folder / "root").rename(place)
    return place


def _downloaded(folder: Path) -> List[Path]:
    """What apt would install, with the machine's package lists, else with fresh ones."""
    options = ["-o", f"Dir::Cache::archives={folder}/archives", "-o", "APT::Sandbox::User=", "-o", "Debug::NoLocking=1"]
    words = [
        "apt-get",
        "-y",
        "-q",
        "--no-install-recommends",
        "--download-only",
        "--reinstall",
        *options,
        "install",
        *_PACKAGES,
    ]
    (folder / "archives/partial").mkdir(parents=True)
    try:
        _run(words)
    except Unavailable:
        (folder / "lists/partial").mkdir(parents=True)
        lists = ["-o", f"Dir::State::lists={folder}/lists"]
        _run(["apt-get", "-q", *options, *lists, "-o", "Acquire::Languages=none", "update"])
        _run([words[0], *lists, *words[1:]])
    return sorted((folder / "archives").glob("*.deb"))


def _run(words: List[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise Unavailable(f"{words[0]} failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}")


class Crashed(NamedTuple):
    pid: int


class Systemd:
    """``inside`` makes words run where journal and cores are. With ``path`` as PATH, journalctl and coredumpctl are the
    ones there, wherever they are called; with ``strangers_path`` journalctl is run as somebody without any rights."""

    def __init__(self, packages: Path, mounts: Mounts, folder: Path) -> None:
        self._packages, self._mounts, self._folder = packages, mounts, folder
        names = ("usr/lib/x86_64-linux-gnu/systemd", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")
        self._libraries = f"LD_LIBRARY_PATH={':'.join(f'/run/packages/{name}' for name in names)}"
        self.path = self._tools("root", [])
        self.strangers_path = self._tools("stranger", ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])

    def _tools(self, name: str, rights: List[str]) -> str:
        """A PATH that begins with a folder of scripts, which go into the namespace."""
        folder = self._folder / name
        folder.mkdir()
        for tool in ("journalctl", "coredumpctl"):
            words = self.inside([*rights, "env", self._libraries, self.program(tool)])
            (folder / tool).write_text(f'#!/bin/sh\nexec {" ".join(words)} "$@"\n')
            (folder / tool).chmod(0o755)
        return f"{folder}:{os.environ['PATH']}"

    def program(self, name: str) -> str:
        """Return the path of a program: from the packages, or the machine's own where apt found it installed."""
        for folder in _FOLDERS:
            if (self._packages / folder / name).exists():
                return f"/run/packages/{folder}/{name}"
        return next((f"/{folder}/{name}" for folder in _FOLDERS if Path(f"/{folder}/{name}").exists()), name)

    def inside(self, words: List[str]) -> List[str]:
        return self._mounts.inside(words)

    def seen(self, name: str) -> Path:
        """A path of the namespace, as we see it."""
        return self._mounts.seen(Path(name))

    def configure(self, text: str) -> None:
        """coredump.conf(5), for the next crashes."""
        self.seen("/run/systemd/coredump.conf.d/test.conf").write_text(f"[Coredump]\n{text}\n")

    def daemon(self, words: List[str], socket: str) -> subprocess.Popen[bytes]:
        """Starts one, and returns when its socket is there."""
        command = self.inside(["env", self._libraries, *words])
        with (self._folder / f"{Path(words[0]).name}.log").open("wb") as log:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + _WAIT_S
        while not self.seen(socket).exists():
            if started.poll() is not None or time.monotonic() > until:
                said = (self._folder / f"{Path(words[0]).name}.log").read_text(errors="replace")
                raise Unavailable(f"{words[0]} does not start: {said.strip()[-300:]}")
            time.sleep(0.01)
        return started

    def crash(self, python: str, program: Path, number: int, unit: Optional[str] = None) -> Crashed:
        """Runs a program up to its fatal signal, and has systemd-coredump take its core. unit: of systemd, as the
        process's control group would name it."""
        feed = self._folder / "feed.sh"
        group = self._folder / "cgroup"
        path = f"/system.slice/{unit}" if unit else "/"
        group.write_text(f"1:name=systemd:{path}\n0::{path}\n")
        feed.write_text(
            f"set -e\nmount --bind {group} /proc/$1/cgroup\n{self._libraries} "
            f"{self.program('systemd-coredump')} $1 0 0 {number} $(date +%s) 18446744073709551615 ada < $2\n"
            "umount /proc/$1/cgroup\n"
        )
        core = self._folder / "the.core"
        shell = " ".join(self.inside(["sh", str(feed), "$PM_PID", str(core)]))
        take = [
            "run",
            f"gcore {core}",
            "python import os; os.environ['PM_PID'] = str(gdb.selected_inferior().pid)",
            f"shell {shell} || echo REFUSED",
            "python print('PID', gdb.selected_inferior().pid)",
            "kill",
        ]
        words = [str(find_gdb()), "-nx", "-q", "-batch"]
        for command in take:
            words += ["-ex", command]
        done = subprocess.run(
            [*words, "--args", python, str(program)],
            cwd=program.parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "MALLOC_ARENA_MAX": "1"},  # gcore writes what others only reserve
        )
        core.unlink()
        pids = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("PID ")]
        assert pids and "REFUSED" not in done.stdout, done.stdout + done.stderr
        self.await_entry(pids[0])
        return Crashed(pids[0])

    def await_entry(self, pid: int) -> None:
        until = time.monotonic() + _WAIT_S
        while not self.run(["journalctl", "-q", "-o", "cat", f"COREDUMP_PID={pid}"]).stdout:
            assert time.monotonic() < until, "systemd-coredump wrote nothing into the journal"
            time.sleep(0.02)

    def run(self, words: List[str], **more: str) -> subprocess.CompletedProcess[str]:
        """A command in the namespace, with coredumpctl and journalctl on its PATH."""
        environment: Dict[str, str] = {**os.environ, "PATH": self.path, "LC_ALL": "C.UTF-8", **more}
        return subprocess.run(
            self.inside(words), env=environment, capture_output=True, text=True, timeout=60, check=False
        )


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Systemd]:
    """journald and systemd-coredump, until the block ends. Raises Unavailable."""
    if find_gdb() is None:
        raise Unavailable("gdb is not installed: apt install gdb")
    packages = set_up()
    with contextlib.ExitStack() as started:
        try:
            mounts = started.enter_context(mounted(_MOUNTS.replace("{packages}", str(packages))))
        except OSError as exc:
            raise Unavailable(str(exc)) from None
        systemd = Systemd(packages, mounts, folder)
        journald = systemd.program("systemd-journald")
        coredump = ["--seqpacket", "--accept", "-l", "/run/systemd/coredump", systemd.program("systemd-coredump")]
        for words, socket in (
            ([journald], "/run/systemd/journal/socket"),
            ([systemd.program("systemd-socket-activate"), *coredump], "/run/systemd/coredump"),
        ):
            process = systemd.daemon(words, socket)
            started.callback(process.wait)
            started.callback(process.send_signal, signal.SIGTERM)
        yield systemd


def require(folder: Path) -> Iterator[Systemd]:
    """For a fixture: skips where it cannot be set up, and fails there in CI."""
    try:
        context = running(folder)
        systemd = context.__enter__()
    except Unavailable as exc:
        lacking(str(exc))
    with contextlib.ExitStack() as stack:
        stack.push(context)
        yield systemd
