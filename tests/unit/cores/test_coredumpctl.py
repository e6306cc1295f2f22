"""`coredumpctl:MATCH`: which core is meant, where it is, and what is said when it is not; with a fake journalctl."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any, List, Optional

import pytest

from postmortem.cores import coredumpctl, journal
from postmortem.cores.journal import Where
from postmortem.errors import (
    CoreGone,
    NotACore,
    PermissionRefused,
    PostmortemError,
    TargetNotFound,
    ToolFailed,
    ToolMissing,
    UsageError,
)
from postmortem.evidence import Origin
from postmortem.foreign.held import Folder

from ...support.inwords import reason, remedy
from ...support.journals import FakeJournal, crashed, export

CORE = b"\x7fELF" + bytes(5000) + b"core"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJournal:
    made = FakeJournal(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    return made


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where systemd-coredump keeps its files."""
    monkeypatch.setattr(coredumpctl, "FOLDER", str(tmp_path))


@pytest.fixture
def core(tmp_path: Path) -> Path:
    path = tmp_path / "core.python3.zst"
    path.write_bytes(CORE)
    return path


def pids(match: str, where: Where = Where()) -> List[Optional[int]]:  # noqa: B008 - a tuple
    return [entry.number("COREDUMP_PID") for entry in coredumpctl.choose(match, where)]


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ("last", [4, 3, 2, 1]),
        ("3", [3]),
        ("python3", [3, 1]),
        ("/usr/bin/python3.11", [3, 1]),
        ("python3.11", [3, 1]),  # the program's name, where no command has it
        ("gunicorn: master process of tide", [2]),  # the kernel keeps fifteen bytes
        ("web.service", [2]),
        ("web", [4]),  # a command of that name comes before a unit of that name
        ("tide", [1]),
        ("tide.service", [1]),
    ],
)
def test_what_a_match_means(fake: FakeJournal, match: str, expected: List[int]) -> None:
    """coredumpctl's meaning first: PID, executable with a slash, command; then program and unit. The newest first."""
    fake.lists(
        crashed(4, COREDUMP_COMM="web", COREDUMP_EXE="/opt/web (deleted)"),
        crashed(3),
        crashed(2, COREDUMP_COMM="gunicorn: maste", COREDUMP_EXE="/opt/py", COREDUMP_UNIT="web.service"),
        crashed(1, COREDUMP_USER_UNIT="tide.service"),
    )
    assert pids(match) == expected


def test_an_executable_that_was_replaced_meanwhile(fake: FakeJournal) -> None:
    """The kernel says "(deleted)" of it; nobody types that."""
    fake.lists(crashed(4, COREDUMP_EXE="/opt/web (deleted)"))
    assert pids("/opt/web") == [4]


def test_journalctl_is_asked_for_little(fake: FakeJournal) -> None:
    """A match of fields, the directory and the time are passed on; the environment of the process is not asked for."""
    fake.lists(crashed(1))
    pids("COREDUMP_UID=1000", Where(fake.folder, "-2h"))
    assert {"-r", "export", "-D", str(fake.folder), "--since=-2h", "COREDUMP_UID=1000"} <= set(fake.called)
    assert f"MESSAGE_ID={journal.MESSAGE_ID}" in fake.called
    assert "ENVIRON" not in " ".join(fake.called)


def test_what_is_known_of_it(fake: FakeJournal, core: Path) -> None:
    """Everything that systemd noted and that helps, in the evidence's words."""
    fake.lists(
        crashed(
            7,
            COREDUMP_FILENAME=str(core),
            COREDUMP_UNIT="user@1000.service",
            COREDUMP_USER_UNIT="tide.service",
            COREDUMP_CMDLINE="python3 -c 'import os; os.abort()'",
            COREDUMP_HOSTNAME="bertha",
            COREDUMP_SIGNAL=6,
        ),
        crashed(6),
    )
    with coredumpctl.opened("python3", Where()) as stored:
        assert stored.path.samefile(core)
        assert stored.named == str(core)
        assert stored.argv == ("python3", "-c", "import os; os.abort()")
        assert (stored.exe, stored.root, stored.gaps) == ("/usr/bin/python3.11", None, ())
        assert stored.origin == Origin(
            "systemd",
            str(core),
            7,
            "python3",
            "SIGABRT",
            1_700_000_007.0,
            "tide.service",
            "bertha",
            None,
            1,
            "verified",
        )


def test_a_core_inside_the_journal(fake: FakeJournal) -> None:
    """It comes out whole, into a file of no name, which is gone with the block."""
    fake.lists(crashed(7))
    fake.holds(CORE * 300)
    with coredumpctl.opened("7", Where()) as stored:
        assert stored.path.read_bytes() == CORE * 300
        assert (stored.named, stored.origin.core) == ("coredumpctl:7", None)
    assert "--cursor=s=1;i=7" in fake.called
    assert not stored.path.exists()


def test_the_limit_holds_for_the_journal_too(fake: FakeJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    """POSTMORTEM_MAX_UNPACKED bounds what is taken out."""
    monkeypatch.setenv("POSTMORTEM_MAX_UNPACKED", "10K")
    fake.lists(crashed(7))
    fake.holds(CORE * 300)
    with pytest.raises(NotACore, match="unpacks to more than 10240 bytes"), coredumpctl.opened("7", Where()):
        pass


def test_one_that_systemd_cut_short(fake: FakeJournal, core: Path) -> None:
    """It is analysed, and the gap names the settings."""
    fake.lists(crashed(7, COREDUMP_FILENAME=str(core), COREDUMP_TRUNCATED="1"))
    with coredumpctl.opened("7", Where()) as stored:
        (gap,) = stored.gaps
    assert "cut short by systemd" in reason(gap)
    assert "coredump.conf" in (remedy(gap) or "")


MESSAGE = """Process 7 (python3) of user 1000 dumped core.

Module libc.so.6 from deb glibc-2.36
Stack trace of thread 7:
#0  0x00007ffff789eeec abort (libc.so.6 + 0x8aeec)
#1  0x00007ffff784ffb2 \x1b[31mevil (evil.so + 0x3bfb2)
"""


def test_a_core_that_was_removed(fake: FakeJournal, tmp_path: Path, core: Path) -> None:
    """Which one, why, what else there is; and what systemd read out of it when it was there."""
    gone = tmp_path / "gone.zst"
    fake.lists(crashed(7, COREDUMP_FILENAME=str(gone), MESSAGE=MESSAGE), crashed(6, COREDUMP_FILENAME=str(core)))
    with pytest.raises(CoreGone) as raised, coredumpctl.opened("last", Where()):
        pass
    said = raised.value.sentence()
    assert said.startswith(
        f"the core of PID 7 (python3, SIGSEGV, 2023-11-14 22:13:27 UTC) is gone: {gone} was removed; "
    )
    assert "MaxUse" in said
    assert said.endswith("; coredumpctl:6 is older and still there")
    assert raised.value.known[0] == "command line: python3 tide.py"
    assert raised.value.known[-3:-1] == (
        "Stack trace of thread 7:",
        "#0  0x00007ffff789eeec abort (libc.so.6 + 0x8aeec)",
    )


def test_a_command_line_that_the_journal_kept_is_masked(fake: FakeJournal, tmp_path: Path) -> None:
    """The journal has it as it was typed; what is told of a core that is no more has no password."""
    fake.lists(
        crashed(7, COREDUMP_FILENAME=str(tmp_path / "gone"), COREDUMP_CMDLINE="python3 tide.py --password hunter2")
    )
    with pytest.raises(CoreGone) as raised, coredumpctl.opened("last", Where()):
        pass
    assert raised.value.known[0] == "command line: python3 tide.py --password <redacted>"


def test_a_core_that_was_never_kept(fake: FakeJournal) -> None:
    """Storage=none: which setting, before it crashes again."""
    fake.lists(crashed(7))
    with pytest.raises(CoreGone, match="systemd did not keep the core of PID 7") as raised, coredumpctl.opened(
        "7", Where()
    ):
        pass
    assert "Storage=external" in raised.value.next


def test_a_core_of_somebody_else(fake: FakeJournal, core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused by the kernel: whose it is, and how to be allowed."""

    def refuse(folder: Folder, name: str) -> int:
        raise PermissionError(13, "Permission denied")

    fake.lists(crashed(7, COREDUMP_FILENAME=str(core)))
    monkeypatch.setattr(Folder, "open", refuse)
    with pytest.raises(PermissionRefused) as raised, coredumpctl.opened("7", Where()):
        pass
    assert raised.value.sentence().endswith(f"{core}, may not be read by this user; run as root, or as its user")


def test_a_path_that_is_no_file(fake: FakeJournal, tmp_path: Path) -> None:
    """Anybody may write such an entry: a FIFO is not opened, which would wait for ever."""
    os.mkfifo(str(tmp_path / "fifo"))
    fake.lists(crashed(7, COREDUMP_FILENAME=str(tmp_path / "fifo")))
    with pytest.raises(NotACore, match="which is not a regular file"), coredumpctl.opened("7", Where()):
        pass


def test_in_a_container(fake: FakeJournal, core: Path) -> None:
    """Its program is not this machine's: the gap says so and how to get at it."""
    cgroup = f"/system.slice/docker-{'3f' * 32}.scope"
    fake.lists(crashed(7, COREDUMP_FILENAME=str(core), COREDUMP_CGROUP=cgroup, COREDUMP_CONTAINER_CMDLINE="/sbin/init"))
    with coredumpctl.opened("7", Where()) as stored:
        (gap,) = stored.gaps
    assert stored.origin.container == "3f3f3f3f3f3f"
    assert "in a container (3f3f3f3f3f3f)" in reason(gap)
    assert "--sysroot" in (remedy(gap) or "")


def test_a_root_of_its_own(fake: FakeJournal, core: Path, tmp_path: Path) -> None:
    """chroot(2): its files are read there while the directory exists."""
    for root in (tmp_path, tmp_path / "gone"):
        fake.lists(crashed(7, COREDUMP_FILENAME=str(core), COREDUMP_ROOT=str(root)))
        with coredumpctl.opened("7", Where()) as stored:
            assert len(stored.gaps) == (0 if root.exists() else 1)
            assert stored.root.samefile(root) if stored.root else not root.exists()


def test_a_core_copied_beside_the_journal(fake: FakeJournal, core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """-D with both in one directory: the name alone counts."""
    monkeypatch.setattr(coredumpctl, "FOLDER", str(core.parent / "elsewhere"))
    fake.lists(crashed(7, COREDUMP_FILENAME=f"{coredumpctl.FOLDER}/{core.name}"))
    with coredumpctl.opened("7", Where(core.parent)) as stored:
        assert stored.path.samefile(core)
    with pytest.raises(CoreGone), coredumpctl.opened("7", Where()):
        pass


def test_the_machine_s_own_root_is_no_container(fake: FakeJournal, core: Path) -> None:
    """systemd notes COREDUMP_ROOT=/ too."""
    fake.lists(crashed(7, COREDUMP_FILENAME=str(core), COREDUMP_ROOT="/", COREDUMP_CGROUP="/user.slice"))
    with coredumpctl.opened("7", Where()) as stored:
        assert (stored.origin.container, stored.gaps) == (None, ())


@pytest.mark.parametrize(
    ("said", "status", "error", "sentence"),
    [
        ("Failed to parse timestamp: soon", 1, UsageError, "--since 'soon' is not a time"),
        ("Failed to add match 'X': Invalid argument", 1, UsageError, "does not understand this match"),
        (
            "No journal files were opened due to insufficient permissions.",
            0,
            PermissionRefused,
            "may not read the journal",
        ),
        ("Failed to open /x: Permission denied", 1, PermissionRefused, "may not read the journal"),
        ("Failed to mmap journal: \x1b[2J", 1, ToolFailed, "journalctl says: Failed to mmap"),
        ("", 1, ToolFailed, "no reason given"),
        ("No journal files were found.", 0, TargetNotFound, "the journal has no core"),
    ],
)
def test_what_journalctl_says(fake: FakeJournal, said: str, status: int, error: type, sentence: str) -> None:
    """Each of its ways to fail has a sentence with a next step."""
    fake.fails(said, status)
    with pytest.raises(error, match=sentence) as raised:
        pids("last", Where(None, "soon"))
    assert isinstance(raised.value, PostmortemError)
    assert raised.value.next


def test_without_journalctl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without systemd."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="journalctl is not installed"):
        pids("last")


def test_nothing_matches(fake: FakeJournal) -> None:
    """The newest there are; to whom others are hidden, that."""
    fake.lists(*(crashed(pid) for pid in range(9, 0, -1)))
    with pytest.raises(TargetNotFound) as raised:
        pids("ruby")
    assert raised.value.sentence() == (
        "the journal has no core of 'ruby'; the newest: PID 9 (python3, SIGSEGV), PID 8 (python3, SIGSEGV), "
        "PID 7 (python3, SIGSEGV) and 6 more; `coredumpctl list` shows all"
    )
    fake.fails("Hint: You are currently not seeing messages from other users and the system.", 0)
    with pytest.raises(TargetNotFound, match="no core of 'ruby'") as raised:
        pids("ruby")
    assert "systemd-journal" in raised.value.next


HOSTILE = [
    crashed(7, COREDUMP_COMM=b"a\nb\x1b[2J\xff", COREDUMP_EXE=b"\xff\n", COREDUMP_CMDLINE=b"unbalanced ' quote\n\xfe"),
    crashed(7, COREDUMP_TIMESTAMP="9" * 19, COREDUMP_SIGNAL="9" * 12, COREDUMP_COMM=b"x" * (3 << 20)),
    crashed(7, COREDUMP_TIMESTAMP="-1", COREDUMP_SIGNAL="eleven", COREDUMP_CMDLINE="y" * (3 << 20), COREDUMP_EXE=""),
    crashed(7, MESSAGE=b"\n" * (2 << 20), COREDUMP_FILENAME=b"/no\0where\n"),
    crashed(7, **{f"COREDUMP_X{number}": "1" for number in range(3000)}),
]


@pytest.mark.parametrize("entry", HOSTILE)
def test_hostile_fields_are_harmless(fake: FakeJournal, entry: Any) -> None:
    """Newlines, bytes that are no text, megabytes, numbers of no meaning: an entry all the same, and what is behind it."""
    fake.lists(entry, crashed(6))
    assert pids("last") == [7, 6]
    with pytest.raises(PostmortemError), coredumpctl.opened("7", Where()):
        pass
    for known in coredumpctl.choose("last", Where()):
        assert len(coredumpctl.origin_of(known, 0, Where()).command or "") <= 64 << 10


def test_an_export_that_ends_anywhere() -> None:
    """Cut at every byte: whole entries alone."""
    parts = [export([crashed(7, COREDUMP_CMDLINE=b"two\nlines")]), export([crashed(6)])]
    whole = b"".join(parts)
    for end in range(len(whole) + 1):
        found = [entry.number("COREDUMP_PID") for entry in journal.parsed(BytesIO(whole[:end]), {"COREDUMP_PID"})]
        assert found == [7, 6][: (end >= len(parts[0])) + (end == len(whole))]


def test_a_length_that_is_a_lie(fake: FakeJournal) -> None:
    """Eight exabytes are announced: what is there is read, and no memory is asked for."""
    fake.lists_bytes(export([crashed(7)]) + b"COREDUMP_PID\n" + b"\xff" * 8 + b"123")
    assert pids("last") == [7]


def test_options_that_no_target_heeds() -> None:
    """--since and -D are about the journal."""
    for since, directory, option in (("-1h", None, "--since"), (None, Path("/var"), "-D")):
        with pytest.raises(UsageError, match=f"{option} is for cores in the journal"):
            journal.where(["core.1"], since, directory)
    assert journal.where(["core.1", "coredumpctl:last"], "-1h", None) == Where(None, "-1h")
