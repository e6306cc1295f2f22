"""What gdb would load, run or wait for beside a foreign program: scripts, debug files, a library for threads."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, Iterator

import pytest

from tests.support.capturing import environment

from ..support.required import needs
from . import further
from .bundles import SECRET
from .further import BOUND_S, PYTHON, Place, give, harmless, kept, running

needed = [name for name in ("gdb", "gcc", "objcopy") if shutil.which(name) is None]
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and another user beside it"),
    needs(not needed, f"missing: {needed}"),
]


@pytest.fixture
def place() -> Iterator[Place]:
    with further.place() as made:
        yield made


def section(library: Path, name: str, content: bytes) -> None:
    held = library.with_suffix(".section")
    held.write_bytes(content)
    subprocess.run(["objcopy", "--add-section", f"{name}={held}", str(library)], check=True)
    held.unlink()


def debug_link(library: Path, name: str) -> None:
    words = name.encode() + b"\0"
    section(library, ".gnu_debuglink", words + b"\0" * (-len(words) % 4) + struct.pack("<I", 1))


def build_id(path: Path) -> str:
    said = subprocess.run(["readelf", "-n", str(path)], capture_output=True, text=True, check=True).stdout
    return next(line.split()[-1] for line in said.splitlines() if "Build ID" in line)


def inline_script(place: Place, library: Path, marker: Path) -> None:
    words = f"\x04hostile\nopen({str(marker)!r}, 'w')\n\0\x01{place.theirs}/beside.py\0"
    (place.theirs / "beside.py").write_text(f"open({str(marker)!r}, 'w')\n")
    section(library, ".debug_gdb_scripts", words.encode())


def scripts_beside(place: Place, library: Path, marker: Path) -> None:
    python, plain = f"open({str(marker)!r}, 'w')\n", f"shell touch {marker}\n"
    sysroot = place.theirs / "sysroot"
    for each in (library, place.theirs / "python"):
        for folder in (
            each.parent,
            Path(f"{sysroot}{each.parent}"),
            Path(f"{sysroot}/usr/share/gdb/auto-load{each.parent}"),
        ):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{each.name}-gdb.py").write_text(python)
            (folder / f"{each.name}-gdb.gdb").write_text(plain)


def initial_files(place: Place, library: Path, marker: Path) -> None:
    for name in (".gdbinit", ".gdbearlyinit", "gdbinit", ".config/gdb/gdbinit", "gdb/gdbinit", "gdb/gdbearlyinit"):
        path = place.theirs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"shell touch {marker}\n")


def thread_library(place: Place, library: Path, marker: Path) -> None:
    source = place.theirs / "t.c"
    source.write_text(
        f'#include <fcntl.h>\n__attribute__((constructor)) void f(void) {{ open("{marker}", O_CREAT, 0600); }}\n'
    )
    made = place.theirs / "libthread_db.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
    for folder in ("lib", "usr/lib", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"):
        (place.theirs / "sysroot" / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(made, place.theirs / "sysroot" / folder)


def link_to_root(place: Place, library: Path, marker: Path) -> None:
    debug_link(library, "../ours/secret.py")


def link_that_blocks(place: Place, library: Path, marker: Path) -> None:
    os.mkfifo(place.theirs / "pipe.debug")
    debug_link(library, "pipe.debug")


def link_without_end(place: Place, library: Path, marker: Path) -> None:
    (place.theirs / "zero.debug").symlink_to("/dev/zero")
    debug_link(library, "zero.debug")


def build_ids(place: Place, library: Path, marker: Path) -> None:
    for number, each in enumerate((library, place.theirs / "python")):
        name = build_id(each)
        folder = place.theirs / "sysroot/usr/lib/debug/.build-id" / name[:2]
        folder.mkdir(parents=True, exist_ok=True)
        if number:
            os.mkfifo(folder / f"{name[2:]}.debug")
        else:
            (folder / f"{name[2:]}.debug").symlink_to(place.hidden)


ACTS: Dict[str, Callable[[Place, Path, Path], None]] = {
    "scripts inside a library": inline_script,
    "scripts beside a library and a program": scripts_beside,
    "initial files": initial_files,
    "library for threads": thread_library,
    "debug link to root's file": link_to_root,
    "debug link to a FIFO": link_that_blocks,
    "debug link to an endless device": link_without_end,
    "build ids": build_ids,
}


def _run(place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    known = {**environment(), "HOME": str(place.theirs), "XDG_CONFIG_HOME": str(place.theirs)}
    command = [sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-m", "postmortem", *words]
    return subprocess.run(
        command, env=known, cwd=place.theirs, capture_output=True, text=True, timeout=BOUND_S, check=False
    )


@pytest.mark.parametrize("act", list(ACTS.values()), ids=list(ACTS))
def test_what_gdb_finds_beside_a_foreign_program(place: Place, act: Callable[[Place, Path, Path], None]) -> None:
    """A user's program, libraries, directories and sysroot offer gdb scripts, a library for threads, and debug files that
    are root's, block or never end. Capturing, analysing and debugging, with the sysroot and without, run none of it."""
    python, library, marker = place.theirs / "python", place.theirs / "libhostile.so", place.base / "marker"
    shutil.copy(os.path.realpath(PYTHON), python)
    source = place.theirs / "l.c"
    source.write_text("int f(void) { return 1; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,--build-id", "-o", str(library), str(source)], check=True)
    (place.theirs / "sysroot").mkdir()
    act(place, library, marker)
    give(place.theirs)
    bundle = place.base / "bundle"
    program = f"import ctypes, time\nk = ctypes.CDLL({str(library)!r})\nprint('up', flush=True)\ntime.sleep(600)\n"
    with running(place, program, python=(str(python),)) as pid:
        harmless(_run(place, "capture", "--pid", str(pid), "--observe", "0.1", "-o", str(bundle)), (0,))
    sysroot = ("--sysroot", str(place.theirs / "sysroot"))
    (core,) = bundle.rglob("*.core")
    harmless(_run(place, "analyze", str(core), *sysroot, "--exe", str(python)), (0, 1))
    for words in ((str(bundle),), (*sysroot, "--exe", str(python), str(core))):
        harmless(_run(place, "debug", *words, "-ex", "pm-threads", "--batch"), (0, 1))
    assert not marker.exists(), "a foreign script or library ran"
    assert SECRET not in kept(bundle)


def test_sources_that_a_live_process_names(place: Place) -> None:
    """Root's gdb on another user's process, whose frames say that they are of a file of root's: the child reads sources with
    that user's rights, and pm-why says why this one is not shown."""
    program = (
        f"import time\ncode = compile('import time\\ndef f():\\n    time.sleep(600)\\n', {str(place.hidden)!r}, 'exec')\n"
        "names = {}\nexec(code, names)\nprint('up', flush=True)\nnames['f']()\n"
    )
    script = Path(__file__).resolve().parents[2] / "gdb" / "postmortem.py"
    with running(place, program) as pid:
        words = ["gdb", "-nx", "-batch", "-iex", "set auto-load off", "-p", str(pid), "-x", str(script)]
        done = subprocess.run(
            [*words, "-ex", "pm-why", "-ex", "pm-bt"],
            env={**environment(), "POSTMORTEM_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )
    harmless(done, (0,))
    assert "may not read it" in " ".join(done.stdout.split()), done.stdout + done.stderr
    assert f"f at {place.hidden}:3" in done.stdout
