"""A CPython on musl, the C library of Alpine Linux, built from Debian's source package with Debian's musl-gcc.

Its modules are part of the program: a minute of a whole CI run is what the build may cost, and musl has neither zlib's
headers nor libffi's here, so there is no ``zlib`` and no ``ctypes``.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .apt import PrivateApt
from .build import copy_library, source_tree
from .steps import Unavailable, run, say
from .wanted import Wanted

#: As Modules/Setup lists them: the module, its sources, flags.
_MODULES = """
*static*
_asyncio _asynciomodule.c
_bisect _bisectmodule.c
_blake2 _blake2/blake2module.c _blake2/blake2b_impl.c _blake2/blake2s_impl.c
_contextvars _contextvarsmodule.c
_csv _csv.c
_datetime _datetimemodule.c
_heapq _heapqmodule.c
_json _json.c
_md5 md5module.c
_multiprocessing -I$(srcdir)/Modules/_multiprocessing _multiprocessing/multiprocessing.c _multiprocessing/semaphore.c
_opcode _opcode.c
_pickle _pickle.c
_posixshmem -I$(srcdir)/Modules/_multiprocessing _multiprocessing/posixshmem.c
_posixsubprocess _posixsubprocess.c
_queue _queuemodule.c
_random _randommodule.c
_sha1 sha1module.c
_sha256 sha256module.c
_sha512 sha512module.c
_socket socketmodule.c
_statistics _statisticsmodule.c
_struct _struct.c
_typing _typingmodule.c
_xxsubinterpreters _xxsubinterpretersmodule.c
_zoneinfo _zoneinfo.c
array arraymodule.c
binascii binascii.c
cmath cmathmodule.c
fcntl fcntlmodule.c
grp grpmodule.c
math mathmodule.c
mmap mmapmodule.c
resource resource.c
select selectmodule.c
termios termios.c
unicodedata unicodedata.c
"""
#: configure compares the platform that it finds with what the compiler says, which is the one of glibc.
_COMPILER = """#!/bin/sh
case "$*" in
    *print-multiarch*) echo x86_64-linux-musl ;;
    *) exec musl-gcc "$@" ;;
esac
"""
_CONFIGURE = ("--quiet", "--disable-test-modules", "--without-ensurepip", "--without-static-libpython")


def set_up(wanted: Wanted, apt: PrivateApt, folder: Path) -> Path:
    """The program, installed below ``folder`` with its standard library. Raises Unavailable."""
    for tool, package in (("make", "build-essential"), ("musl-gcc", "musl-tools")):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed: it belongs to Debian's package {package}")
    with source_tree(wanted, apt, folder) as tree:
        _compile(wanted, tree, folder)
        for place in ("bin", f"lib/{wanted.program}/lib-dynload"):
            (folder / place).mkdir(parents=True)
        shutil.copy2(tree / "python", folder / "bin" / wanted.program)
        copy_library(wanted, tree, folder)
    return folder / "bin" / wanted.program


def _compile(wanted: Wanted, tree: Path, folder: Path) -> None:
    log = folder.parent / f"{wanted.id}.log"
    jobs = str(len(os.sched_getaffinity(0)))
    compiler = tree.parent / "musl-cc"
    compiler.write_text(_COMPILER)
    compiler.chmod(0o755)
    (tree / "Modules" / "Setup.local").write_text(_MODULES)
    say(wanted.id, "configuring")
    # pkg-config would find the libraries of glibc.
    machine = [f"CC={compiler}", "PKG_CONFIG=/bin/false", "OPT=-DNDEBUG -g -O1"]
    run(["./configure", *_CONFIGURE, f"--prefix={folder}", *machine], cwd=tree, log=log)
    say(wanted.id, "compiling, about a minute on two cores")
    run(["nice", "-n", "10", "make", "-s", f"-j{jobs}", "python", "pybuilddir.txt"], cwd=tree, log=log)
    log.unlink()
