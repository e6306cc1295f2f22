"""Undamaged inputs of every kind. What a capture writes is taken of ``program.py`` once, and kept beside the cores."""

from __future__ import annotations

import base64
import gzip
import lzma
import shutil
import subprocess
import sys
import tempfile
import zlib
from functools import lru_cache
from pathlib import Path
from shutil import which
from typing import Callable, Dict, List, Optional, Tuple

from ....corpora.cases import ROOT as CORPORA
from ....support.capturing import HANG_S
from ....support.corefiles import core, note, prstatus
from ....support.journals import crashed, export
from .. import bases
from .inputs import Input

PROGRAM = Path(__file__).with_name("program.py")
#: Evidence of the corpora that is larger says nothing that the rest does not.
_LARGEST = 400 << 10
_TOP = "bundle"


class NotTaken(Exception):
    """No capture could be had; says why."""


def captured(folder: Optional[Path] = None) -> Path:
    """The bundle of a capture of ``program.py``, taken now if there is none yet. Raises NotTaken."""
    place = (folder or bases.home()) / f"raw-{zlib.crc32(PROGRAM.read_bytes()):08x}"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=str(place.parent)) as scratch:
            bundle = Path(scratch) / _TOP
            script = Path(scratch) / "program.py"
            shutil.copy(str(PROGRAM), str(script))
            words = ["capture", "-t", "1", "--observe", "0.5", "-o", str(bundle), "--", sys.executable, str(script)]
            done = subprocess.run(
                [sys.executable, "-m", "postmortem", *words],
                cwd=scratch,
                capture_output=True,
                text=True,
                timeout=HANG_S,
                check=False,
            )
            if done.returncode != 124 or not (bundle / "evidence.json").is_file():
                raise NotTaken(f"the capture ended with {done.returncode}: {done.stderr.strip()}")
            bundle.rename(place)
    return place


class Clean:
    """Makes undamaged inputs, the same ones for the same numbers. ``folder``: where the capture is kept."""

    def __init__(self, folder: Optional[Path] = None) -> None:
        self._bundle = captured(folder)
        self._recorded = sorted(path for path in CORPORA.glob("*/*/evidence.json") if path.stat().st_size <= _LARGEST)

    def input(self, kind: str, number: int) -> Input:
        return getattr(self, f"_{kind}")(number)

    def _evidence(self, number: int) -> Input:
        """A bundle of which nothing but recorded evidence is left, one of the corpora's."""
        data = self._recorded[number % len(self._recorded)].read_bytes()
        made = Input("evidence", _TOP, {}, []).with_file(f"{_TOP}/evidence.json", data)
        return made.with_file(f"{_TOP}/manifest.json", self._read("manifest.json"))

    def _raw(self, _number: int) -> Input:
        """What capture noted, and no evidence yet: it was killed, or its diagnosis failed."""
        return self._whole(0).without(f"{_TOP}/evidence.json")._replace(kind="raw")

    def _whole(self, _number: int) -> Input:
        made = Input("whole", _TOP, {}, [])
        for path in sorted(self._bundle.rglob("*")):
            name = path.relative_to(self._bundle).as_posix()
            if path.is_file() and path.suffix in (".json", ".txt") and name != "report.txt":
                made = made.with_file(f"{_TOP}/{name}", path.read_bytes())
        return made

    def _cores(self, _number: int) -> Input:
        """With a core: small, and not of a Python program."""
        pid = next(iter((self._bundle / "raw" / "cores").glob("*.core"))).stem
        return self._raw(0)._replace(kind="cores").with_file(f"{_TOP}/raw/cores/{pid}.core", small_core())

    def _zip(self, number: int) -> Input:
        """The files that are to go into ``bundle.zip``."""
        whole = self._whole(0) if number % 3 == 0 else self._evidence(number)
        return whole._replace(kind="zip", target=f"{_TOP}.zip")

    def _apport(self, number: int) -> Input:
        data = gzip.compress(small_core(), mtime=0)
        lines = b"".join(b" " + base64.b64encode(data[at : at + 300]) + b"\n" for at in range(0, len(data), 300))
        head = (
            b"ProblemType: Crash\nDate: Sat Jan 31 12:00:00 2026\nExecutablePath: /usr/bin/python3.11\n"
            b"ProcCmdline: python3 /srv/tide.py --once\nProcEnviron:\n LANG=C\nSignal: 11\n"
        )
        parts = (head, b"CoreDump: base64\n" + lines, b"Uname: Linux\n")
        return Input("apport", "a.crash", {}, []).with_file("a.crash", b"".join(parts[:: -1 if number % 4 == 0 else 1]))

    def _abrt(self, number: int) -> Input:
        items = {
            "analyzer": b"CCpp",
            "type": b"CCpp",
            "reason": b"python3 killed by SIGSEGV",
            "time": b"1769860800",
            "pid": b"7",
            "rootdir": b"/nowhere",
            "global_pid": b"4711",
            "executable": b"/usr/bin/python3.11",
            "cmdline": b"python3 /srv/tide.py",
            "hostname": b"ada",
            "container_id": b"0123456789abcdef",
            "uid": b"1000",
        }
        made = Input("abrt", "ccpp", {}, [])
        for name, data in items.items():
            made = made.with_file(f"ccpp/{name}", data)
        name, pack = _packers()[number % len(_packers())]
        return made.with_file(f"ccpp/coredump{name}" if name else "ccpp/coredump", pack(small_core()))

    def _journal(self, number: int) -> Input:
        """What journalctl prints: three cores, of which the newest is kept in a file, in the journal, or nowhere."""
        newest = crashed(3, COREDUMP_MESSAGE="Process 3 dumped core.\n\nStack trace of thread 3:\n#0 0x1 n/a")
        made = Input("journal", ("coredumpctl:last", "coredumpctl:3", "coredumpctl:python3")[number % 3], {}, [])
        if number % 4 == 0:
            newest["COREDUMP_FILENAME"] = "core.zst"  # below the case's folder, where the command runs
            _name, pack = _packers()[number % len(_packers())]
            made = made.with_file("core.zst", pack(small_core()))
        elif number % 4 < 3:
            made = made.with_file("journal-core", export([{"__CURSOR": "s=1", "COREDUMP": small_core()}]))
        several = [newest, crashed(2, COREDUMP_UNIT="web.service", COREDUMP_ROOT="/nowhere"), crashed(1)]
        return made.with_file("journal", export(several))

    def _compressed(self, number: int) -> Input:
        name, pack = _packers()[number % len(_packers())]
        return Input("compressed", f"core{name}", {}, []).with_file(f"core{name}", pack(small_core()))

    def _read(self, name: str) -> bytes:
        return (self._bundle / name).read_bytes()


@lru_cache(maxsize=1)
def small_core() -> bytes:
    """Two threads and some memory, of no Python program."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "core"
        status = note(1, prstatus(7, orig_rax=202, rdi=0x1000)) + note(1, prstatus(8, orig_rax=0))
        core(path, status, [(0x1000, bytes(range(256)) * 32, 0x2000), (0x7000, bytes(0x4000), 0x4000)])
        return path.read_bytes()


@lru_cache(maxsize=1)
def _packers() -> List[Tuple[str, Callable[[bytes], bytes]]]:
    """Suffix → what packs so; plain, and what this machine has programs or libraries for."""
    found: List[Tuple[str, Callable[[bytes], bytes]]] = [
        (".gz", lambda data: gzip.compress(data, mtime=0)),
        (".xz", lzma.compress),
        ("", lambda data: data),
    ]
    for suffix, tool in ((".zst", "zstd"), (".lz4", "lz4")):
        packed = _by_library(tool) or _by_tool(tool)
        if packed is not None:
            found.append((suffix, packed))
    return found


def _by_library(codec: str) -> Optional[Callable[[bytes], bytes]]:
    try:
        if codec == "zstd":
            import zstandard  # noqa: PLC0415

            return lambda data: bytes(zstandard.ZstdCompressor().compress(data))
        import lz4.frame  # noqa: PLC0415

        return lambda data: bytes(lz4.frame.compress(data))
    except ImportError:
        return None


def _by_tool(tool: str) -> Optional[Callable[[bytes], bytes]]:
    program = which(tool)
    if program is None:
        return None
    return lambda data: subprocess.run([str(program), "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def zip_files(given: Input) -> Dict[str, bytes]:
    return {name: node.data for name, node in given.nodes.items() if node.kind == "file"}
