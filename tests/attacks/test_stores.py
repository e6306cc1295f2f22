"""Attacks on the stores of cores: forged journal entries, crash reports of files that are none, bombs, broken codecs."""

from __future__ import annotations

import base64
import gzip
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from postmortem.cores import codecs, containers, coredumpctl, stores, unpacked
from postmortem.cores import journal as systems_journal
from postmortem.cores.journal import Where
from postmortem.errors import CoreGone, NotACore, PostmortemError

from ..support.inwords import reason
from ..support.journals import FakeJournal, crashed, forged
from ..support.work import ends

CORE = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\x00" + bytes(5000) + b"core" * 1000
NOBODY = 65534
#: What a hang is told by: nothing here takes a second.
PATIENCE_S = 60

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user and makes devices")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """systemd-coredump's folder with one core in it."""
    folder = tmp_path / "coredump"
    folder.mkdir()
    (folder / "core.1").write_bytes(CORE)
    monkeypatch.setattr(coredumpctl, "FOLDER", str(folder), raising=False)
    return folder


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJournal:
    made = FakeJournal(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    return made


def analyze(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command; it must end, refuse in sentences, and never trace back."""
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "analyze", *words],
        env={**os.environ, **environment},
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "a defect of postmortem" not in done.stderr
    return done


def refused(*words: str, **environment: str) -> str:
    """What it says where nothing can be analysed."""
    done = analyze(*words, **environment)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


# ---------------------------------------------------------------------- the journal


def test_a_newer_forged_entry_does_not_displace_a_genuine_one(journal: FakeJournal, kept: Path) -> None:
    """Whatever it claims, by each way to ask that both fit."""
    core = str(kept / "core.1")
    claims = {"COREDUMP_UNIT": "web.service", "COREDUMP_FILENAME": core}
    for liar in (
        forged(1, **claims),
        forged(1, **claims, _EXE="/usr/lib/systemd/systemd-coredump"),  # with a library of the user's in LD_PRELOAD
        forged(1, **claims, _EXE="", _SYSTEMD_UNIT="", _SYSTEMD_CGROUP=""),  # it ended before journald looked
        forged(1, **claims, _SYSTEMD_UNIT="systemd-coredump@1.service.evil.scope"),
        crashed(1, **claims, _TRANSPORT="syslog"),
        crashed(1, **claims, _UID=1001),  # its number was another process's by the time journald looked
        crashed(1, **claims, _UID=0, _SYSTEMD_UNIT="", _SYSTEMD_CGROUP=f"/system.slice/docker-{'3f' * 32}.scope"),
    ):
        journal.lists(liar, crashed(1, COREDUMP_UNIT="tide.service", COREDUMP_FILENAME=core))
        for match in ("last", "1", "python3", "/usr/bin/python3.11"):
            with coredumpctl.opened(match, Where()) as stored:
                assert (stored.origin.unit, stored.origin.trust) == ("tide.service", "verified")
                assert stored.origin.others == 0


def test_entries_that_systemd_coredump_wrote_are_known(journal: FakeJournal, kept: Path) -> None:
    """As the crashed program's user, as its own user for system users, and as root without a unit."""
    core = str(kept / "core.1")
    for fields in (
        {},
        {"_UID": 998, "COREDUMP_UID": 33},
        {"_UID": 0, "COREDUMP_UID": 0},
        {"_UID": 0, "_SYSTEMD_UNIT": "", "_SYSTEMD_CGROUP": "/"},
        {"_UID": 0, "_SYSTEMD_UNIT": "", "_SYSTEMD_CGROUP": "", "_EXE": ""},
    ):
        journal.lists(crashed(1, COREDUMP_FILENAME=core, **fields))
        with coredumpctl.opened("last", Where()) as stored:
            assert stored.origin.trust == "verified", fields


def test_a_forged_entry_is_told_as_such_and_believed_in_nothing(
    journal: FakeJournal, kept: Path, tmp_path: Path
) -> None:
    """Asked for by what it claims, where nothing else fits: no unit, command, root, executable or time of its."""
    (tmp_path / "root").mkdir()
    journal.lists(
        forged(
            7,
            COREDUMP_FILENAME=str(kept / "core.1"),
            COREDUMP_UNIT="web.service",
            COREDUMP_ROOT=str(tmp_path / "root"),
            COREDUMP_HOSTNAME="bertha",
            COREDUMP_CMDLINE="sshd",
            COREDUMP_CGROUP=f"/docker/{'3f' * 32}",
        )
    )
    with coredumpctl.opened("web.service", Where()) as stored:
        origin = stored.origin
        assert (stored.root, stored.exe, stored.argv) == (None, None, ())
        assert any("systemd-coredump" in reason(gap) and "any user" in reason(gap) for gap in stored.gaps)
    assert (origin.trust, origin.written_by, origin.pid) == ("unverified", 1001, 7)
    assert (origin.unit, origin.command, origin.signal, origin.container) == (None, None, None, None)
    assert (origin.hostname, origin.time) == ("ada", 1_700_000_000.0)


def test_a_flood_of_forged_entries_hides_nothing(journal: FakeJournal, kept: Path) -> None:
    """More of them than are looked at, before the genuine one."""
    flood = [forged(9)] * 10_001
    journal.lists(*flood, crashed(1, COREDUMP_FILENAME=str(kept / "core.1")))
    with coredumpctl.opened("last", Where()) as stored:
        assert (stored.origin.pid, stored.origin.trust) == (1, "verified")


def test_a_removed_core_of_a_forged_entry_tells_nothing_of_its(journal: FakeJournal, kept: Path) -> None:
    """Neither command line nor stacks are repeated."""
    message = "x\nStack trace of thread 7:\n#0 evil"
    journal.lists(forged(7, COREDUMP_FILENAME=str(kept / "gone"), COREDUMP_CMDLINE="rm -rf /", MESSAGE=message))
    with pytest.raises(CoreGone) as raised, coredumpctl.opened("7", Where()):
        pass
    assert raised.value.known == ()


ELSEWHERE = ("{0}/secret", "{0}/coredump/../secret", "{0}/coredump/sub/core", "secret", "/", "", "{0}/coredump/..")


@pytest.mark.parametrize("claim", ELSEWHERE)
def test_a_core_elsewhere_is_not_opened(journal: FakeJournal, kept: Path, tmp_path: Path, claim: str) -> None:
    """An entry may claim any path; systemd-coredump keeps its files in one folder, and only that one is read."""
    (tmp_path / "secret").write_bytes(CORE)
    (kept / "sub").mkdir()
    (kept / "sub" / "core").write_bytes(CORE)
    for entry in (forged, crashed):
        journal.lists(entry(7, COREDUMP_FILENAME=claim.format(tmp_path).encode() or b"\n"))
        with pytest.raises(PostmortemError), coredumpctl.opened("7", Where()):
            pass


def _link(path: Path) -> None:
    (path.parent.parent / "secret").write_bytes(CORE)
    path.symlink_to(path.parent.parent / "secret")


def _device(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero


def _strangers(path: Path) -> None:
    path.write_bytes(CORE)
    os.chown(path, NOBODY, NOBODY)


ODD: Dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "link": _link,
    "loop": lambda path: path.symlink_to(path.name),
    "folder": lambda path: path.mkdir(),
}
OF_ROOT: Dict[str, Callable[[Path], object]] = {"device": _device}
ALL_ODD = [*ODD, *(pytest.param(name, marks=as_root) for name in OF_ROOT)]


def odd(name: str, path: Path) -> None:
    """Something that is no regular file."""
    {**ODD, **OF_ROOT}[name](path)


@pytest.mark.parametrize("name", ALL_ODD)
def test_a_core_that_is_no_file_is_refused(journal: FakeJournal, kept: Path, name: str) -> None:
    """In systemd-coredump's own folder, beside a copied journal, in a problem directory, as a lone target."""
    odd(name, kept / "core.odd")
    journal.lists(crashed(7, COREDUMP_FILENAME=str(kept / "core.odd")))
    for where in (Where(), Where(kept)):
        with pytest.raises(NotACore), coredumpctl.opened("7", where):
            pass


@as_root
def test_a_core_of_a_third_user_is_refused(journal: FakeJournal, kept: Path) -> None:
    """In the folder, a file is root's or the crashed program's user's; of a forged entry, the writer's."""
    _strangers(kept / "core.3")
    core = str(kept / "core.3")
    journal.lists(crashed(7, COREDUMP_FILENAME=core))
    with pytest.raises(NotACore, match=f"belongs to user {NOBODY}"), coredumpctl.opened("7", Where()):
        pass
    journal.lists(crashed(7, COREDUMP_FILENAME=core, COREDUMP_UID=NOBODY, _UID=NOBODY))
    with coredumpctl.opened("7", Where()) as stored:
        assert stored.path.read_bytes() == CORE


def test_a_core_that_is_replaced_meanwhile_is_the_one_that_was_checked(journal: FakeJournal, kept: Path) -> None:
    """What is handed on is the open file, not its name."""
    journal.lists(crashed(7, COREDUMP_FILENAME=str(kept / "core.1")))
    with coredumpctl.opened("7", Where()) as stored:
        (kept / "core.1").unlink()
        (kept / "core.1").symlink_to("/etc/passwd")
        assert stored.path.read_bytes() == CORE


@as_root
def test_a_root_by_way_of_another_user_s_link_is_not_entered(journal: FakeJournal, kept: Path, tmp_path: Path) -> None:
    """It may lead anywhere by the time that files are read below it."""
    (tmp_path / "root").mkdir()
    (tmp_path / "way").symlink_to(tmp_path / "root")
    for owner, entered in ((0, True), (NOBODY, False)):
        os.chown(tmp_path / "way", owner, owner, follow_symlinks=False)
        journal.lists(crashed(7, COREDUMP_FILENAME=str(kept / "core.1"), COREDUMP_ROOT=str(tmp_path / "way")))
        with coredumpctl.opened("7", Where()) as stored:
            assert (stored.root is not None) == entered


def test_the_root_of_a_copied_journal_is_not_entered(journal: FakeJournal, kept: Path, tmp_path: Path) -> None:
    """-D: its fields are as good as who made the files, and its paths are another machine's."""
    (tmp_path / "root").mkdir()
    journal.lists(crashed(7, COREDUMP_FILENAME=str(kept / "core.1"), COREDUMP_ROOT=str(tmp_path / "root")))
    with coredumpctl.opened("7", Where(tmp_path)) as stored:
        assert (stored.root, stored.origin.trust, len(stored.gaps)) == (None, "copied", 1)


def test_a_root_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system in user space may keep whoever looks at it: the look is given up."""
    monkeypatch.setattr(containers, "_serve", lambda request: time.sleep(10 * PATIENCE_S))
    monkeypatch.setattr(containers, "_DEADLINE_S", 0.1)
    with ends(PATIENCE_S):
        assert containers.root(None, None, "/tmp") is None


def test_a_journalctl_that_never_ends(journal: FakeJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged journal: it is ended, when it lists and when it hands over a core."""
    (journal.folder / "journalctl").write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr("postmortem.cores.journal._STALL_S", 0.2)
    with pytest.raises(PostmortemError, match="did not end in time"):
        systems_journal.entries(Where(), deadline_s=0.2)
    with pytest.raises(PostmortemError, match="did not end in time"):
        list(systems_journal.stored_core(Where(), systems_journal.Entry({})))


# ---------------------------------------------------------------------- reports of crashes


def problem(folder: Path) -> Path:
    place = folder / "ccpp-1"
    place.mkdir()
    items = {"type": "CCpp", "time": "1700000000", "executable": "/usr/bin/python3.11", "reason": "killed by SIGABRT"}
    for name, text in items.items():
        (place / name).write_text(text)
    (place / "coredump").write_bytes(CORE)
    return place


@pytest.mark.parametrize("name", ALL_ODD)
def test_items_of_abrt_that_are_no_files(tmp_path: Path, name: str) -> None:
    """Each of them is as good as missing; where it is the core, that is refused; nothing hangs."""
    place = problem(tmp_path)
    for item in ("hostname", "pid", "cmdline", "rootdir", "container_id"):
        odd(name, place / item)
    with stores.opened(str(place), Where()) as stored:  # type: ignore[union-attr]
        assert stored.path.read_bytes() == CORE
        assert (stored.origin.hostname, stored.origin.pid, stored.argv, stored.root) == (None, None, (), None)
    (place / "coredump").unlink()
    odd(name, place / "coredump")
    assert "coredump" in refused(str(place))


def test_a_link_of_abrt_s_leads_nowhere(tmp_path: Path) -> None:
    """An item that is a link to another file's text is not read."""
    place = problem(tmp_path)
    (tmp_path / "secret").write_text("hunter2")
    (place / "hostname").symlink_to(tmp_path / "secret")
    with stores.opened(str(place), Where()) as stored:  # type: ignore[union-attr]
        assert "hunter2" not in repr(stored)


@as_root
def test_a_root_that_a_stranger_s_problem_directory_names(tmp_path: Path) -> None:
    """Anybody can make such a directory: the root is entered only where it is ours or root's."""
    place = problem(tmp_path)
    (tmp_path / "root").mkdir()
    (place / "rootdir").write_text(str(tmp_path / "root"))
    for owner, mode, entered in ((0, 0o755, True), (NOBODY, 0o755, False), (0, 0o777, False)):
        for path in (place, *place.iterdir()):
            os.chown(path, owner, owner)
        place.chmod(mode)
        with stores.opened(str(place), Where()) as stored:  # type: ignore[union-attr]
            assert (stored.root is not None) == entered


def test_a_huge_item_of_abrt(tmp_path: Path) -> None:
    """A gigabyte of zeros: its beginning."""
    place = problem(tmp_path)
    with (place / "cmdline").open("wb") as item:
        item.truncate(1 << 30)
    with stores.opened(str(place), Where()) as stored:  # type: ignore[union-attr]
        assert sum(map(len, stored.argv)) <= 64 << 10


@pytest.mark.parametrize("name", ["fifo", *(p for p in ALL_ODD if not isinstance(p, str))])
def test_a_report_of_apport_that_is_no_file(tmp_path: Path, name: str) -> None:
    """A FIFO, a device: refused in a sentence."""
    odd(name, tmp_path / "x.crash")
    assert "is not a regular file" in refused(str(tmp_path / "x.crash"))


@pytest.mark.parametrize("name", ALL_ODD)
def test_a_directory_of_cores_and_of_what_is_none(tmp_path: Path, name: str) -> None:
    """A link may be the newest: it does not count."""
    (tmp_path / "cores").mkdir()
    (tmp_path / "cores" / "core.1").write_bytes(CORE)
    odd(name, tmp_path / "cores" / "core.2")
    with stores.opened(str(tmp_path / "cores"), Where()) as stored:  # type: ignore[union-attr]
        assert stored.named == str(tmp_path / "cores" / "core.1")
        assert stored.origin.others == 0


# ---------------------------------------------------------------------- bombs and codecs


def _bomb(path: Path, frames: int) -> None:
    """An ELF header and 64 MB of zeros a frame."""
    zeros = gzip.compress(bytes(64 << 20), 9)
    path.write_bytes(gzip.compress(CORE) + zeros * frames)


def test_a_bomb_is_refused_without_being_asked_to(tmp_path: Path) -> None:
    """8 GB of zeros in 8 MB would fit as holes; so many times its size no core unpacks to, unless the user says so."""
    zstd = pytest.importorskip("zstandard").ZstdCompressor()
    (tmp_path / "bomb.zst").write_bytes(zstd.compress(CORE) + zstd.compress(bytes(64 << 20)) * 128)
    said = refused(str(tmp_path / "bomb.zst"), POSTMORTEM_MAX_UNPACKED="")
    assert "unpacks to more than" in said
    assert "POSTMORTEM_MAX_UNPACKED" in said


def test_a_limit_holds_wherever_the_core_lies(tmp_path: Path) -> None:
    """3 GB in a file, in an item of abrt's, in a report of apport's, in a directory."""
    place = problem(tmp_path)
    (place / "coredump").unlink()
    _bomb(place / "coredump.gz", 48)
    (tmp_path / "cores").mkdir()
    os.link(place / "coredump.gz", tmp_path / "cores" / "core.gz")
    text = base64.b64encode((place / "coredump.gz").read_bytes())
    (tmp_path / "x.crash").write_bytes(b"ProblemType: Crash\nCoreDump: base64\n " + text + b"\n")
    for target in (place / "coredump.gz", place, tmp_path / "cores", tmp_path / "x.crash"):
        said = refused(str(target), POSTMORTEM_MAX_UNPACKED="100M")
        assert "unpacks to more than 104857600 bytes" in said, target


def test_a_window_that_would_fill_the_memory(tmp_path: Path) -> None:
    """An xz stream may ask for a dictionary of 1.5 GB: that is damage, not memory."""
    lzma = pytest.importorskip("lzma")
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1536 << 20}]
    packed = lzma.compress(CORE, filters=[{**filters[0], "dict_size": 1 << 20}])
    at = packed.index(bytes([0x21, 0x01]), 12)  # filter flags: LZMA2, one byte of properties
    header = bytearray(packed[12:24])
    header[at - 12 + 2] = 40  # 4 GB - 1, by the .xz file format 5.3.1
    import zlib  # noqa: PLC0415 - only here

    header[8:12] = zlib.crc32(bytes(header[:8])).to_bytes(4, "little")
    (tmp_path / "core.xz").write_bytes(packed[:12] + bytes(header) + packed[24:])
    assert "nothing can be unpacked" in refused(str(tmp_path / "core.xz"))


class _Breaking:
    """A decoder that gives a beginning, and then does what a broken library does."""

    eof, needs_input, unused_data = False, True, b""

    def __init__(self, breaks: Callable[[], object]) -> None:
        self._breaks, self._begun = breaks, False

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if self._begun:
            self._breaks()
        self._begun = True
        time.sleep(2 * unpacked._STEP_S)  # so that the beginning has been told
        return CORE + bytes(8192)


def _for_ever() -> None:
    signal.pause()


@pytest.mark.parametrize(
    ("breaks", "reason"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "SIGSEGV"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),  # as the kernel does where memory runs out
        (_for_ever, "did not answer in time"),
        (lambda: os._exit(3), "ended without an answer"),
    ],
    ids=["crash", "killed", "loop", "exit"],
)
def test_a_codec_that_breaks_is_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: Callable[[], object], reason: str
) -> None:
    """What had come out is a beginning of the core, and the reason is told."""
    make: Any = lambda: _Breaking(breaks)  # noqa: E731
    broken = codecs.Codec("broken", b"BROKEN", make, "broken")
    monkeypatch.setattr(codecs, "CODECS", (broken,))
    monkeypatch.setattr(unpacked, "DEADLINE_S", 2.0)
    (tmp_path / "core").write_bytes(b"BROKEN" + bytes(1 << 20))
    with unpacked.unpacked(tmp_path / "core", lambda text: None) as plain:
        assert reason in (plain.short or "")
        assert plain.path.read_bytes() == (CORE + bytes(8192))[: plain.size]
        assert plain.size >= len(CORE)


# ---------------------------------------------------------------------- nothing is left behind

_UNPACKS = """
import sys
from pathlib import Path
from postmortem.cores import stores
from postmortem.cores.unpacked import unpacked

def told(text):
    print(text, flush=True)
    sys.stdin.read()  # until we are ended

kept = stores.opened(sys.argv[1], stores.Where())
if kept is not None:
    path = kept.__enter__().path
else:
    path = Path(sys.argv[1])
with unpacked(path, told):
    pass
"""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "tmp"
    place.mkdir()
    yield place
    assert list(place.iterdir()) == []


def _children(pid: int) -> List[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL], ids=lambda n: n.name)
@pytest.mark.parametrize("store", ["file", "report"])
def test_an_end_in_the_middle_leaves_nothing(tmp_path: Path, room: Path, store: str, number: signal.Signals) -> None:
    """Neither a file in the temporary folder nor the child that unpacks."""
    target = tmp_path / "core.gz"
    _bomb(target, 48)
    if store == "report":
        text = base64.b64encode(target.read_bytes())
        target = tmp_path / "x.crash"
        target.write_bytes(b"ProblemType: Crash\nCoreDump: base64\n " + text + b"\n")
    ended = subprocess.Popen(
        [sys.executable, "-c", _UNPACKS, str(target)],
        env={**os.environ, "TMPDIR": str(room)},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with ended:
        assert ended.stdout is not None
        assert "unpacking" in ended.stdout.readline()
        (child,) = _children(ended.pid)
        ended.send_signal(number)
        assert ended.wait(PATIENCE_S) == -number
    until = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{child}").exists() and Path(f"/proc/{child}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < until
        time.sleep(0.01)
