"""Which store a target belongs to; apport's reports, abrt's problem directories, directories with cores, containers."""

from __future__ import annotations

import base64
import gzip
import os
import tracemalloc
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from postmortem.cores import apport, containers, stores, unpacked
from postmortem.cores.store import words
from postmortem.cores.stores import Where
from postmortem.errors import CoreGone, NotACore, PermissionRefused, PostmortemError
from postmortem.foreign import held

from ...support.inwords import reason

CORE = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00" + bytes(5000) + b"core" * 1000

REPORT = """ProblemType: Crash
Architecture: amd64
Date: Sat Jan 31 12:00:00 2026
ExecutablePath: /usr/bin/python3.11
ProcCmdline: python3 /srv/tide.py --once
ProcEnviron:
 LANG=C
 API_TOKEN=hunter2
Signal: 11
SignalName: SIGSEGV
"""


def packed(core: bytes, line: int = 3000) -> bytes:
    """A binary field as apport writes it: each line is base64 of its own."""
    data = gzip.compress(core)
    pieces = [data[:10], *(data[at : at + line] for at in range(10, len(data), line))]
    return b"CoreDump: base64\n" + b"".join(b" " + base64.b64encode(piece) + b"\n" for piece in pieces)


def crash_file(folder: Path, *parts: bytes) -> Path:
    path = folder / "_usr_bin_python3.11.0.crash"
    path.write_bytes(b"".join(parts))
    return path


def opened(path: Path) -> Any:
    found = stores.opened(str(path), Where())
    assert found is not None
    return found


# ---------------------------------------------------------------------- apport


@pytest.mark.parametrize("before", [True, False])
def test_a_report_of_apport(tmp_path: Path, before: bool) -> None:
    """The core, wherever its field stands, with command line, signal and time; the environment is not kept."""
    parts = [REPORT.encode(), packed(CORE), b"Uname: Linux\n"]
    path = crash_file(tmp_path, *(parts if before else [parts[1], parts[0]]))
    with opened(path) as stored:
        with unpacked.unpacked(stored.path, lambda text: None) as plain:
            assert plain.path.read_bytes() == CORE
        assert stored.argv == ("python3", "/srv/tide.py", "--once")
        assert (stored.named, stored.exe, stored.gaps) == (str(path), "/usr/bin/python3.11", ())
        origin = stored.origin
    assert (origin.store, origin.command, origin.signal, origin.core) == ("apport", "python3.11", "SIGSEGV", str(path))
    assert origin.time is not None
    assert "hunter2" not in repr(stored)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([REPORT.encode()], "holds no core: the core (python3.11, SIGSEGV, "),
        ([REPORT.encode(), b"CoreDump: base64\n"], "holds no core"),
        ([b"ProblemType: Crash\nTraceback:\n Traceback (most recent call last):\n"], "holds a traceback and no core"),
    ],
)
def test_a_report_without_a_core(tmp_path: Path, parts: List[bytes], sentence: str) -> None:
    """Which of the reasons it is, as far as the report tells."""
    with pytest.raises(CoreGone) as raised, opened(crash_file(tmp_path, *parts)):
        pass
    assert sentence in raised.value.sentence()
    assert raised.value.next


def test_a_report_that_is_cut_or_damaged(tmp_path: Path) -> None:
    """What came before is kept, and the gap says so."""
    whole = packed(CORE + os.urandom(100_000))
    for data in (whole[:-5000], whole.replace(whole[-2000:-1990], b"!" * 10)):
        with opened(crash_file(tmp_path, REPORT.encode(), data)) as stored:
            (gap,) = stored.gaps
            assert "damaged" in reason(gap) or "ends in the middle" in reason(gap)
            with unpacked.unpacked(stored.path, lambda text: None) as plain:
                assert plain.short
                assert plain.path.read_bytes().startswith(CORE)


def test_a_report_with_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, before it fills the memory."""
    monkeypatch.setattr(apport, "_LONGEST_LINE", 1 << 20)
    path = crash_file(tmp_path, REPORT.encode(), b"CoreDump: base64\n " + b"A" * (8 << 20))
    tracemalloc.start()
    with pytest.raises(NotACore, match="has a line of more than 1 MB"), opened(path):
        pass
    assert tracemalloc.get_traced_memory()[1] < 6 << 20
    tracemalloc.stop()


# ---------------------------------------------------------------------- abrt


def problem(folder: Path, **items: str) -> Path:
    place = folder / "ccpp-2026-01-31-12:00:00-4711"
    place.mkdir()
    given: Dict[str, str] = {
        "type": "CCpp",
        "analyzer": "abrt-ccpp",
        "time": "1700000000",
        "pid": "4711",
        "executable": "/usr/bin/python3.11",
        "cmdline": "python3 tide.py",
        "reason": "python3.11 killed by SIGABRT",
        "hostname": "ada",
        "environ": "TOKEN=hunter2",
    }
    for name, text in {**given, **items}.items():
        (place / name).write_text(text + "\n")
    return place


def test_a_problem_of_abrt(tmp_path: Path) -> None:
    """The core with all that abrt noted, but for the environment."""
    place = problem(tmp_path)
    (place / "coredump").write_bytes(CORE)
    with opened(place) as stored:
        assert stored.path.samefile(place / "coredump")
        assert (stored.argv, stored.exe) == (("python3", "tide.py"), "/usr/bin/python3.11")
        origin = stored.origin
    assert (origin.pid, origin.signal, origin.time, origin.hostname) == (4711, "SIGABRT", 1700000000.0, "ada")
    assert "hunter2" not in repr(stored)


def test_a_problem_in_a_container(tmp_path: Path) -> None:
    """Its files are read where they still lie; else the gap says what to pass."""
    (tmp_path / "root").mkdir()
    for root in (tmp_path / "root", tmp_path / "nowhere"):
        place = problem(tmp_path, container_id="3f" * 32, rootdir=str(root))
        (place / "coredump").write_bytes(CORE)
        with opened(place) as stored:
            assert stored.origin.container == "3f3f3f3f3f3f"
            assert len(stored.gaps) == (0 if root.exists() else 1)
            assert stored.root.samefile(root) if stored.root else not root.exists()
        place.rename(tmp_path / root.name.upper())


@pytest.mark.parametrize(
    ("kind", "sentence"), [("CCpp", "the core of PID 4711 (python3.11, SIGABRT, "), ("Python3", "of kind Python3")]
)
def test_a_problem_without_a_core(tmp_path: Path, kind: str, sentence: str) -> None:
    """Removed to save room, or there never was one."""
    with pytest.raises(CoreGone) as raised, opened(problem(tmp_path, type=kind)):
        pass
    assert sentence in raised.value.sentence()


# ---------------------------------------------------------------------- directories


def test_a_directory_with_cores(tmp_path: Path) -> None:
    """The newest that is a core by its content, how many others there are; nothing else counts."""
    for number, (name, data) in enumerate(
        [
            ("core.1", CORE),
            ("core.2.gz", gzip.compress(CORE)),
            ("core.3", CORE),
            ("core.py", b"x"),
            ("libcore.so", b"\x7fELF"),
        ]
    ):
        (tmp_path / name).write_bytes(data)
        os.utime(str(tmp_path / name), (1_700_000_000 + number,) * 2)
    (tmp_path / "core.d").mkdir()
    os.mkfifo(str(tmp_path / "core.fifo"))
    with opened(tmp_path) as stored:
        assert stored.path.samefile(tmp_path / "core.3")
        assert (stored.origin.store, stored.origin.others) == ("directory", 2)
        assert stored.origin.time == 1_700_000_002


def test_a_directory_without_cores(tmp_path: Path) -> None:
    """Neither a bundle nor cores."""
    with pytest.raises(NotACore, match="neither a bundle nor a directory with cores"), opened(tmp_path):
        pass


def test_a_directory_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in it may be looked at: that is said, and is no defect."""

    def refuse(folder: object, *args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    for name in ("at", "open", "names"):
        with monkeypatch.context() as patched:
            patched.setattr(held.Folder, name, refuse)
            (tmp_path / "core.1").write_bytes(CORE)
            with pytest.raises(
                PermissionRefused, match=r"may not be read by this user|this user may not read"
            ) as raised, opened(tmp_path):
                pass
            assert raised.value.next


def test_what_no_store_keeps(tmp_path: Path) -> None:
    """Bundles, also those cut short, and plain files are not for us."""
    for name in ("raw", "evidence.json", "manifest.json"):
        (tmp_path / name / name).mkdir(parents=True)
        assert stores.opened(str(tmp_path / name), Where()) is None
    (tmp_path / "core").write_bytes(CORE)
    assert stores.opened(str(tmp_path / "core"), Where()) is None
    assert stores.opened(str(tmp_path / "nothing"), Where()) is None


# ---------------------------------------------------------------------- containers and words


@pytest.mark.parametrize(
    ("cgroup", "first", "name"),
    [
        (f"/system.slice/docker-{'ab' * 32}.scope", (), "abababababab"),
        (f"/docker/{'ab' * 32}", (), "abababababab"),
        (f"/kubepods.slice/kubepods-pod1.slice/cri-containerd-{'ab' * 32}.scope", ("/pause",), "abababababab"),
        (f"/machine.slice/libpod-{'ab' * 32}.scope/container", (), "abababababab"),
        ("/machine.slice/machine-tide.scope/payload", (), "tide"),
        ("/lxc.payload.tide/init.scope", (), "tide"),
        ("/user.slice", ("/usr/bin/runner", "--token=x"), "runner"),
        ("/user.slice/user-1000.slice/session-1.scope", (), None),
        ("", (), None),
        (None, (), None),
    ],
)
def test_what_a_container_is_called(cgroup: str, first: Tuple[str, ...], name: str) -> None:
    """By its control group, as docker, podman, Kubernetes, nspawn and LXC name these; else by its first program."""
    assert containers.name(cgroup, first) == name


def test_the_root_of_a_container_that_still_runs(tmp_path: Path) -> None:
    """Through another process of its control group, in the same boot, with a root that is not ours."""
    group = f"/docker/{'ab' * 32}"
    for pid, cgroup, root in (("8", "/user.slice", "theirs"), ("9", group, "ours"), ("10", group, "theirs")):
        (tmp_path / root).mkdir(exist_ok=True)
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(f"0::{cgroup}\n")
        (tmp_path / pid / "root").symlink_to(tmp_path / root)
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "root").symlink_to(tmp_path / "ours")
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("12345678-9abc\n")
    found = containers.root(group, "123456789abc", proc=str(tmp_path))
    assert found is not None
    assert os.path.samestat(os.fstat(found), (tmp_path / "theirs").stat())
    os.close(found)
    for cgroup, boot in ((group, "other"), ("/docker/other", "123456789abc"), ("/", "123456789abc")):
        assert containers.root(cgroup, boot, proc=str(tmp_path)) is None


def test_command_lines_as_stores_keep_them() -> None:
    """Quoted, joined, or neither."""
    assert words("python3 -c 'import os; os.abort()'") == ("python3", "-c", "import os; os.abort()")
    assert words("python3 -c $'a\\nb'") == ("python3", "-c", "a\\nb")
    assert words("python3 it's") == ("python3", "it's")
    assert words(None) == ()


def test_every_error_says_what_to_do(tmp_path: Path) -> None:
    """All that a store raises here is one sentence with a next step."""
    for path in (tmp_path, crash_file(tmp_path, REPORT.encode())):
        with pytest.raises(PostmortemError) as raised, opened(path):
            pass
        assert raised.value.next
        assert "\n" not in raised.value.sentence()
