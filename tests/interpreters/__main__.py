"""``python -m tests.interpreters``: sets up whatever the matrix lacks, and says what cannot be had.

Idempotent: what is finished is left alone, what an interrupted run left is made anew. Ends with status 1 when one that
is not optional is missing among those that this sets up.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Dict, Iterator, List, Optional

from . import build, debian, musl
from .apt import PrivateApt
from .steps import Unavailable, run, say
from .wanted import BY_ID, MATRIX, Wanted, find, home, missing, required, stamp

# What tests lean on must be there, and the interpreter be the one that the table says.
_PROBE = """
import asyncio, concurrent.futures, json, multiprocessing.synchronize, os, queue, socket, subprocess, sys
import sysconfig, threading
print(json.dumps({
    "version": sys.version_info[:2], "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "debug": hasattr(sys, "gettotalrefcount"), "exe": os.readlink("/proc/self/exe"), "release": sys.version.split()[0],
}))
"""


class _LazyApt:
    """apt's lists are fetched once, and only when something is to be set up; a failure holds for all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._apt: Optional[PrivateApt] = None
        self._error: Optional[Unavailable] = None

    def get(self) -> PrivateApt:
        if self._error is not None:
            raise self._error
        if self._apt is None:
            say("apt", "reading the package lists of Debian sid")
            try:
                self._apt = PrivateApt(self._folder)
            except Unavailable as error:
                self._error = error
                raise
        return self._apt

    def clean(self) -> None:
        if self._apt is not None:
            self._apt.clean()


def probe(wanted: Wanted, program: Path) -> str:
    """Its full version. Raises Unavailable when it does not run, or is not what the table says."""
    ctypes = "" if wanted.origin == "musl" else "import ctypes"
    said: Dict[str, object] = json.loads(run([str(program), "-c", ctypes + _PROBE], cwd=Path("/")))
    expected = {"version": list(wanted.version), "free_threaded": wanted.free_threaded, "debug": wanted.debug}
    for key, value in expected.items():
        if said[key] != value:
            raise Unavailable(f"{program} says {key} {said[key]}, not {value}")
    if said["exe"] != str(program.resolve()):
        raise Unavailable(f"a process of {program} is {said['exe']} to the kernel")
    return str(said["release"])


def set_up(wanted: Wanted, apt: _LazyApt) -> None:
    """Makes it from nothing and marks it as finished. Raises Unavailable."""
    started = time.monotonic()
    folder = home() / wanted.id
    stamp(wanted).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    source = apt.get()
    folder.mkdir(parents=True)
    way = {"debian-sid": debian, "musl": musl}.get(wanted.origin, build)
    program = way.set_up(wanted, source, folder)
    release = probe(wanted, program)
    mark = {"recipe": wanted.recipe, "path": str(program), "release": release}
    partial = stamp(wanted).with_suffix(".partial")
    partial.write_text(json.dumps(mark) + "\n")
    partial.rename(stamp(wanted))
    say(wanted.id, f"{release} set up in {time.monotonic() - started:.0f} s: {program}")


def set_up_all(ids: List[str]) -> List[str]:
    """Ids of those that are not optional and could not be had."""
    failed: List[str] = []
    apt = _LazyApt(home() / "apt")
    for wanted in (BY_ID[id] for id in ids):
        found = find(wanted)
        if found is not None:
            say(wanted.id, f"{found}")
        elif not wanted.set_up:
            say(wanted.id, missing(wanted))
        else:
            try:
                set_up(wanted, apt)
            except Unavailable as error:
                say(wanted.id, f"cannot be had: {error}" + (" (optional)" if wanted.optional else ""))
                shutil.rmtree(home() / wanted.id, ignore_errors=True)
                failed += [] if wanted.optional else [wanted.id]
    apt.clean()
    return failed


def _listed() -> Iterator[str]:
    for found in filter(None, map(find, MATRIX)):
        yield f"{found.id} {found}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interpreters", description=__doc__)
    parser.add_argument("id", nargs="*", metavar="ID", help=f"only these of {', '.join(BY_ID)}; all without any")
    parser.add_argument("--list", action="store_true", help="print the id and path of every one that is here")
    parser.add_argument("--required", action="store_true", help="print the ids that CI must have, with commas")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.id) - set(BY_ID))
    if unknown:
        parser.error(f"no such interpreter: {', '.join(unknown)}")
    if chosen.list:
        print(*_listed(), sep="\n")
        return 0
    if chosen.required:
        print(",".join(required()))
        return 0
    home().mkdir(parents=True, exist_ok=True)
    with (home() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("all", "waiting for another run")
            fcntl.flock(lock, fcntl.LOCK_EX)
        return 1 if set_up_all(chosen.id or list(BY_ID)) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interpreters: interrupted; the next run goes on from here")
