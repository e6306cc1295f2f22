"""Real cores, compressed, cut anywhere, huge and sparse, from another root: analysed as the whole ones are."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import pytest

from postmortem.cpython.state.interpreter import Python
from postmortem.memory import ElfCore, Memory
from postmortem.memory.elf import Segment, parse_header, parse_segments

from ..support import required
from ..support.capturing import HANG_S, finished, start
from ..support.interpreters import Program
from ..support.takingcores import gcore, kernel_core, sparse_core

pytestmark = pytest.mark.live

PROGRAM = """
import ctypes, sys, threading, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
threading.stack_size(1 << 20)
gate, up = threading.Lock(), threading.Semaphore(0)
gate.acquire()
def worker(depth):
    if depth:
        return worker(depth - 1)
    up.release()
    gate.acquire()
for number in range(6):
    threading.Thread(target=worker, args=(number,), name=f"w{number}", daemon=True).start()
    up.acquire()
time.sleep(0.2)
print("ready", flush=True)
sys.stdin.read()
"""


class Taken(NamedTuple):
    path: Path
    report: Dict[str, Any]


def analyze(*words: Any, status: int = 0, **env: str) -> Dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "analyze", "-f", "json", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=HANG_S * 2,
        check=False,
        env={**os.environ, **env},
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    report: Dict[str, Any] = json.loads(done.stdout) if status == 0 else {"stderr": done.stderr}
    return report


@pytest.fixture(scope="module", params=[kernel_core, sparse_core, gcore], ids=["kernel", "sparse", "gcore"])
def taken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Taken:
    """A core of each kind, with the report of the whole one."""
    folder = tmp_path_factory.mktemp("taken")
    with Program(sys.executable, PROGRAM, folder, cwd=folder) as program:
        path = request.param(program, folder)
    return Taken(path, analyze(path))


def python_stacks(report: Dict[str, Any]) -> Dict[int, List[Tuple[str, int, str]]]:
    return {
        thread["tid"]: [(f["file"], f["line"], f["function"]) for f in thread["python"] or ()]
        for process in report["processes"]
        for thread in process["threads"]
    }


def test_the_whole_core_is_read(taken: Taken) -> None:
    """Seven threads with their frames, whoever wrote the core: what the cut ones are compared with is worth it."""
    stacks = python_stacks(taken.report)
    assert sorted(len([f for f in frames if f[2] == "worker"]) for frames in stacks.values()) == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("suffix", ["gz", "xz", "zst", "lz4", ""])
def test_a_compressed_core_gives_the_same_report(taken: Taken, suffix: str, tmp_path: Path) -> None:
    """Stacks, native ones too, waits and verdict; with no suffix as well; nothing stays in the temporary folder."""
    path = tmp_path / f"core.{suffix}"
    data = taken.path.read_bytes()
    tool = {"zst": "zstd", "lz4": "lz4", "xz": "xz"}.get(suffix)
    if tool is None:
        path.write_bytes(gzip.compress(data, 1))
    else:
        with path.open("wb") as stream:
            subprocess.run([required.program(tool), "-1", "-q", "-c", str(taken.path)], stdout=stream, check=True)
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    report = analyze(path, TMPDIR=str(scratch))
    for key in ("processes", "verdict", "signature", "findings"):
        assert report[key] == taken.report[key]
    assert [(gap["source"], gap["reason"]) for gap in report["gaps"]] == [
        (gap["source"], gap["reason"].replace(str(taken.path), str(path))) for gap in taken.report["gaps"]
    ]
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("percent", [10, 50, 90])
def test_a_core_cut_short_loses_only_what_was_cut(taken: Taken, percent: int, tmp_path: Path) -> None:
    """Status 0; every stack that is shown is a beginning of the whole one's; a gap says that the file was cut."""
    path = tmp_path / "core"
    shutil.copyfile(str(taken.path), str(path))
    os.truncate(str(path), path.stat().st_size * percent // 100)
    report = analyze(path)
    whole = python_stacks(taken.report)
    for tid, frames in python_stacks(report).items():
        assert frames == whole.get(tid, [])[: len(frames)]
    assert any("cut short" in gap["reason"] for gap in report["gaps"])
    assert all(gap["reason"] for gap in report["gaps"])


class Watched(ElfCore):
    """Notes the largest file offset that anything is read from."""

    last = 0

    def read(self, address: int, size: int) -> bytes:
        for segment in self.loads:
            if segment.vaddr <= address < segment.vaddr + segment.filesz:
                self.last = max(self.last, segment.offset + address - segment.vaddr + size)
        return super().read(address, size)

    def u64(self, address: int) -> int:
        return int.from_bytes(self.read(address, 8), "little")

    def words(self, address: int, count: int) -> Tuple[int, ...]:
        return Memory.words(self, address, count)

    @property
    def loads(self) -> List[Segment]:
        if "segments" not in self.__dict__:
            data = Path(self.path).read_bytes()
            header = parse_header(data[:64])
            self.segments = [s for s in parse_segments(data, header[3], header[4]) if s.type == 1]
        found: List[Segment] = self.segments
        return found


def _threads_at(data: bytes, notes: Segment) -> List[int]:
    """Return the offset of each thread's NT_PRSTATUS. How large the notes between them are differs by CPU."""
    found, at = [], notes.offset
    while at + 12 <= notes.offset + notes.filesz:
        name, content, kind = struct.unpack_from("<III", data, at)
        if kind == 1 and data[at + 12 : at + 16] == b"CORE":
            found.append(at)
        at += 12 + (name + 3 & ~3) + (content + 3 & ~3)
    return found


def test_gcores_notes_cut_off_leave_the_stacks(taken: Taken, tmp_path: Path) -> None:
    """gcore writes its notes last. Without them the loader's own list names the files, and the interpreter the threads."""
    data = taken.path.read_bytes()
    header = parse_header(data[:64])
    notes = next(s for s in parse_segments(data, header[3], header[4]) if s.type == 4)
    if notes.offset < 1 << 20:
        pytest.skip("its notes come first: no cut takes them alone")
    path = tmp_path / "core"
    path.write_bytes(data[: _threads_at(data, notes)[3]])
    assert len(ElfCore(str(path)).threads) == 3
    if sys.version_info >= (3, 11):  # before, only the thread's object knows its number
        assert python_stacks(analyze(path)) == python_stacks(taken.report)
    path.write_bytes(data[: notes.offset])
    core = ElfCore(str(path))
    assert core.threads == []
    whole, cut = (
        [(t.name, [(f.function, f.line) for f in t.frames]) for i in Python(image).interpreters for t in i.threads]
        for image in (ElfCore(str(taken.path)), core)
    )
    assert cut == whole
    report = analyze(path)
    assert any("lists no threads" in gap["reason"] for gap in report["gaps"])
    assert any("gdb" in gap["source"] for gap in report["gaps"])
    if sys.version_info >= (3, 11):
        assert python_stacks(report) == python_stacks(taken.report)


def test_what_survives_of_the_pages_is_shown(taken: Taken, tmp_path: Path) -> None:
    """Cut behind the last byte that reading the stacks needs, it gives every frame of every thread."""
    if taken.path.name == "gcore":
        pytest.skip("gcore writes its notes last: no cut leaves them")
    watched = Watched(str(taken.path))
    Python(watched)
    assert 0 < watched.last < taken.path.stat().st_size
    path = tmp_path / "core"
    shutil.copyfile(str(taken.path), str(path))
    os.truncate(str(path), watched.last)
    whole, cut = (
        [(t.name, [(f.function, f.line) for f in t.frames]) for i in Python(core).interpreters for t in i.threads]
        for core in (watched, ElfCore(str(path)))
    )
    assert cut == whole
    assert sum(len(frames) for _name, frames in whole) > 6 * 5


def test_a_compressed_core_cut_short_is_analysed(taken: Taken, tmp_path: Path) -> None:
    """What came out is read, and the gap says how much and why."""
    path = tmp_path / "core.gz"
    data = gzip.compress(taken.path.read_bytes(), 1)
    path.write_bytes(data[: len(data) * 9 // 10])
    report = analyze(path)
    assert any("could be unpacked" in gap["reason"] and gap["subject"] == str(path) for gap in report["gaps"])
    assert not any("/proc/" in gap["subject"] + gap["reason"] for gap in report["gaps"])


def test_a_huge_sparse_core_takes_little_memory(taken: Taken, tmp_path: Path) -> None:
    """Twenty GB that are not there cost nothing: neither to open nor to read."""
    path = tmp_path / "core"
    shutil.copyfile(str(taken.path), str(path))
    os.truncate(str(path), 20 << 30)
    program = (
        "import sys\nfrom pathlib import Path\nfrom postmortem.extract.assemble.cores import from_core\n"
        "found = from_core(Path(sys.argv[1]))\n"
        "print(len(found.processes[0].threads), next(li.split()[1] for li in open('/proc/self/status') if 'VmHWM' in li))\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    threads, peak = done.stdout.split()
    assert int(threads) == 7
    assert int(peak) < 300 << 10  # KB


def test_another_root_serves(tmp_path: Path) -> None:
    """--sysroot with copies of the files gives the same stacks; an empty one is gaps that say what to pass."""
    required.gdb()
    with Program(sys.executable, PROGRAM, tmp_path) as program:
        done = finished(start("--observe", "0", "-o", str(tmp_path / "b"), "--pid", str(program.pid)), tmp_path / "b")
        core = done.core(program.pid)
    root = tmp_path / "root"
    for name in {file.path for file in ElfCore(str(core)).files if file.path.startswith("/")}:
        if Path(name).is_file():
            copy = Path(f"{root}{name}")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, str(copy))
    plain = python_stacks(analyze(core))
    assert python_stacks(analyze(core, "--sysroot", root)) == plain
    (tmp_path / "empty").mkdir()
    assert any("--sysroot" in (gap["remedy"] or "") for gap in analyze(core, "--sysroot", tmp_path / "empty")["gaps"])


def test_a_program_that_moved_is_named_with_exe(tmp_path: Path) -> None:
    """The interpreter's file is gone under its old name: --exe leads both readers to it, another program is a gap."""
    home = tmp_path / "moved"
    home.mkdir()
    real = Path(os.path.realpath(sys.executable))
    shutil.copyfile(str(real), str(home / "python"))
    (home / "python").chmod(0o755)
    with Program(home / "python", PROGRAM, tmp_path, env={"PYTHONHOME": sys.base_prefix}) as program:
        done = finished(start("--observe", "0", "-o", str(tmp_path / "b"), "--pid", str(program.pid)), tmp_path / "b")
        core = done.core(program.pid)
    (home / "python").unlink()
    with_exe = analyze(core, "--exe", real)
    assert sorted(map(len, python_stacks(with_exe).values()))[-1] > 5
    assert not any("main program" in gap["subject"] for gap in with_exe["gaps"])
    assert any("build-ids differ" in gap["reason"] for gap in analyze(core, "--exe", shutil.which("cat"))["gaps"])


def test_a_core_of_another_architecture_is_named(taken: Taken, tmp_path: Path) -> None:
    """A riscv64 core is refused with one sentence, which says what is read and what helps."""
    path = tmp_path / "core"
    shutil.copyfile(str(taken.path), str(path))
    with path.open("r+b") as stream:
        stream.seek(18)  # e_machine
        stream.write((243).to_bytes(2, "little"))
    (sentence,) = analyze(path, status=1)["stderr"].splitlines()
    assert sentence == (
        f"postmortem: {path} is a core of riscv64: only x86-64 and aarch64 can be read; `postmortem debug` with "
        "gdb-multiarch shows its native stacks"
    )


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x7fELF\x01\x01" + bytes(100), "32-bit"),
        (gzip.compress(b"some text", mtime=0), "holds no ELF file"),
        (b"x" * 200, "no ELF magic"),
    ],
)
def test_what_is_no_core_of_ours_is_one_sentence(data: bytes, sentence: str, tmp_path: Path) -> None:
    """Status 1, and what the file is instead."""
    path = tmp_path / "core"
    path.write_bytes(data)
    assert sentence in analyze(path, status=1)["stderr"]
