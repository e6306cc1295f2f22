"""Free-threaded interpreters, which Debian does not package, built from its source packages.

Optimised little and with debug information, because a minute of a whole CI run is what this may cost; without
assertions, as releases are. Left out is what needs libraries to be installed or long to compile and no test uses.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Iterator

from .apt import PrivateApt
from .steps import Unavailable, run, say
from .wanted import Wanted

_HEADERS = {"ffi.h": "libffi-dev", "zlib.h": "zlib1g-dev"}
_LEFT_OUT = """
*disabled*
_bz2 _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _crypt _curses _curses_panel _dbm _decimal
_elementtree _gdbm _hashlib _lsprof _lzma _remote_debugging _sqlite3 _ssl _tkinter _zstd nis ossaudiodev pyexpat
readline syslog
"""
_CONFIGURE = ("--quiet", "--disable-gil", "--disable-test-modules", "--without-ensurepip", "--without-static-libpython")


def set_up(wanted: Wanted, apt: PrivateApt, folder: Path) -> Path:
    """The program, installed below ``folder`` with its standard library. Raises Unavailable."""
    _need_tools()
    with source_tree(wanted, apt, folder) as tree:
        _compile(wanted, tree, folder)
        copy_library(wanted, tree, folder)
    return folder / "bin" / wanted.program


@contextlib.contextmanager
def source_tree(wanted: Wanted, apt: PrivateApt, folder: Path) -> Iterator[Path]:
    """The unpacked source, beside ``folder`` and gone afterwards. Raises Unavailable."""
    scratch = folder.parent / f"{wanted.id}.build"
    shutil.rmtree(scratch, ignore_errors=True)  # what a killed run left
    tree = scratch / "tree"
    tree.mkdir(parents=True)
    try:
        tarball = apt.source(wanted.source, scratch)
        run(["tar", "-x", "-f", str(tarball), "-C", str(tree), "--strip-components=1", "--no-same-owner"])
        yield tree
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _need_tools() -> None:
    if shutil.which("make") is None or (shutil.which("cc") or shutil.which("gcc")) is None:
        raise Unavailable("no C compiler and make are installed: they belong to Debian's package build-essential")
    for header, package in _HEADERS.items():
        if not any(next(Path("/usr/include").glob(f"{place}{header}"), None) for place in ("", "*/")):
            raise Unavailable(f"the header {header} is missing: it belongs to Debian's package {package}")


def _compile(wanted: Wanted, tree: Path, folder: Path) -> None:
    log = folder.parent / f"{wanted.id}.log"
    jobs = str(len(os.sched_getaffinity(0)))
    (tree / "Modules" / "Setup.local").write_text(_LEFT_OUT)
    say(wanted.id, "configuring")
    run(["./configure", *_CONFIGURE, f"--prefix={folder}", "OPT=-DNDEBUG -g -O1"], cwd=tree, log=log)
    say(wanted.id, "compiling, about a minute on two cores")
    run(["nice", "-n", "10", "make", "-s", f"-j{jobs}", "sharedmods"], cwd=tree, log=log)
    # `make install` would also compile every module of the standard library, thrice.
    run(["make", "-s", "altbininstall", "sharedinstall"], cwd=tree, log=log)
    log.unlink()


def copy_library(wanted: Wanted, tree: Path, folder: Path) -> None:
    """The standard library's own sources, and the build's description that sysconfig reads."""
    (installed,) = (folder / "lib").glob("python3.*")
    leave_out = shutil.ignore_patterns("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "__pycache__")
    for entry in (tree / "Lib").iterdir():
        if entry.is_file():
            shutil.copy2(entry, installed)
        elif entry.name not in leave_out(str(tree), [entry.name]):
            shutil.copytree(entry, installed / entry.name, ignore=leave_out)
    described = list((tree / "build").glob("lib.*/_sysconfigdata*.py"))
    if not described:
        raise Unavailable(f"the build of {wanted.id} left no _sysconfigdata")
    for file in described:
        shutil.copy2(file, installed)
