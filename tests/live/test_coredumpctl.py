"""Cores that the real systemd-coredump took, found by `coredumpctl:`, from their files and out of the journal."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Type

import pytest

from postmortem.cores import coredumpctl, unpacked
from postmortem.cores.journal import Where
from postmortem.errors import CoreGone, PermissionRefused, PostmortemError, TargetNotFound, UsageError

from . import systemd
from .systemd import Systemd

pytestmark = pytest.mark.live

LOCKED = """
import os, threading
threading.stack_size(1 << 18)
tides, moons = threading.Lock(), threading.Lock()
both = threading.Barrier(3)
def take(first, second):
    with first:
        both.wait()
        with second:  # CULPRIT
            pass
for locks in ((tides, moons), (moons, tides)):
    threading.Thread(target=take, args=locks, daemon=True).start()
both.wait()
for task in os.listdir("/proc/self/task"):
    while int(task) != os.getpid() and not open(f"/proc/self/task/{task}/syscall").read().startswith("202 "):
        pass
os.abort()
"""
FAULT = "import ctypes\ndef look():\n    ctypes.string_at(16)\nlook()\n"


class Kept(NamedTuple):
    systemd: Systemd
    locked: int  # of tide.service, the oldest
    fault: int
    inside: int  # the journal itself holds its core, the newest
    python: str  # the executable, as systemd knows it


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    folder = tmp_path_factory.mktemp("systemd")
    programs = {}
    for name, text in (("tide.py", LOCKED), ("look.py", FAULT)):
        programs[name] = folder / name
        programs[name].write_text(text)
    for run in systemd.require(folder):
        python = sys.executable
        locked = run.crash(python, programs["tide.py"], signal.SIGABRT, "tide.service")
        fault = run.crash(python, programs["look.py"], signal.SIGSEGV)
        run.configure("Storage=journal")
        inside = run.crash(python, programs["tide.py"], signal.SIGABRT)
        yield Kept(run, locked.pid, fault.pid, inside.pid, os.path.realpath(python))


def analyze(kept: Kept, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = kept.systemd.run([sys.executable, "-m", "postmortem", "analyze", *words])
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def report(kept: Kept, *words: str) -> Dict[str, Any]:
    document: Dict[str, Any] = json.loads(analyze(kept, "-f", "json", *words).stdout)
    return document


def core_of(pid: int) -> str:
    """Where systemd says that the core of a process is."""
    core = coredumpctl.origin_of(coredumpctl.choose(str(pid), Where())[0], 0, Where()).core
    assert core is not None
    return core


def test_coredumpctl_lists_them(kept: Kept) -> None:
    """The stage is real: coredumpctl itself knows the three, where their cores are, and the unit."""
    listed = kept.systemd.run(["coredumpctl", "list", "--no-legend", "--no-pager"]).stdout
    rows = {int(line.split()[4]): line for line in listed.splitlines()}
    assert list(rows) == [kept.locked, kept.fault, kept.inside]
    assert ["present" in rows[kept.locked], "present" in rows[kept.fault], "journal" in rows[kept.inside]] == [True] * 3
    assert "tide.service" in kept.systemd.run(["coredumpctl", "info", str(kept.locked)]).stdout


def test_a_deadlock_in_a_service(kept: Kept) -> None:
    """The verdict, the whole command line, and what systemd noted; nothing is missing."""
    found = report(kept, "coredumpctl:tide.service")
    origin, process = found["origin"], found["processes"][0]
    assert found["verdict"] == "lock-order-deadlock"
    assert (found["trigger"]["kind"], found["trigger"]["signal"]) == ("core", "SIGABRT")
    assert (origin["store"], origin["pid"], origin["unit"], origin["others"]) == (
        "systemd",
        kept.locked,
        "tide.service",
        0,
    )
    assert (origin["hostname"], origin["container"]) == ("ada", None)
    assert origin["core"].endswith(".zst")
    assert process["pid"] == kept.locked
    assert [Path(word).name for word in process["argv"]] == [Path(sys.executable).name, "tide.py"]
    assert [gap for gap in found["gaps"] if gap["source"] == "core"] == []


def test_last_is_the_newest_and_may_lie_in_the_journal(kept: Kept, tmp_path: Path) -> None:
    """:last is what `coredumpctl info` shows; its core comes out of the journal itself; no path of ours is told."""
    said = analyze(kept, "coredumpctl:last", "--report", str(tmp_path / "report.json")).stdout
    found = json.loads((tmp_path / "report.json").read_text())
    assert found["verdict"] == "lock-order-deadlock"
    assert (found["origin"]["pid"], found["origin"]["core"], found["origin"]["others"]) == (kept.inside, None, 2)
    assert "/proc/" not in json.dumps(found["gaps"])
    assert " ".join(said.split()).count(f"Core of PID {kept.inside}") == 1
    assert "2 older ones are left out" in " ".join(said.split())


def test_which_cores_a_match_means(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """By executable, command, unit, PID, field, and time: the newest first."""
    monkeypatch.setenv("PATH", kept.systemd.path)

    def pids(match: str, since: Optional[str] = None) -> List[Optional[int]]:
        return [entry.number("COREDUMP_PID") for entry in coredumpctl.choose(match, Where(None, since))]

    everything = [kept.inside, kept.fault, kept.locked]
    for match in ("last", kept.python, sys.executable, Path(kept.python).name, Path(sys.executable).name):
        assert pids(match) == everything
    for match in (str(kept.locked), "tide.service", "tide", "COREDUMP_UNIT=tide.service"):
        assert pids(match) == [kept.locked]
    assert pids("last", "-1h") == everything


def test_a_journal_from_elsewhere(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """-D reads a copied journal: what lies in it is analysed, what lay beside it is gone."""
    monkeypatch.setenv("PATH", kept.systemd.path)
    shutil.copytree(str(kept.systemd.seen("/run/log/journal")), str(tmp_path / "journal"))
    copied = next((tmp_path / "journal").iterdir())
    words = [sys.executable, "-m", "postmortem", "analyze", "-D", str(copied), "coredumpctl:last"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Verdict: lock-order-deadlock")
    missing = pytest.raises(CoreGone, match="is gone: /var/lib/systemd/coredump/")
    with missing, coredumpctl.opened(str(kept.fault), Where(copied)):
        pass


def test_what_is_not_there(kept: Kept) -> None:
    """Nothing matches, or no time is given where one should be: a sentence each, and its status."""
    said = analyze(kept, "coredumpctl:nobody", status=1).stderr
    assert f"the journal has no core of 'nobody'; the newest: PID {kept.inside} (" in said
    said = analyze(kept, "--since", "soon", "coredumpctl:last", status=2).stderr
    assert "'soon' is not a time that journalctl understands; write " in said


@pytest.mark.parametrize(
    ("match", "where", "error", "sentence"),
    [
        ("last", Where(None, "2100-01-01"), TargetNotFound, "the journal has no core since 2100-01-01; "),
        ("last", Where(Path("/nowhere"), None), TargetNotFound, "there is no directory /nowhere; "),
        ("=", Where(None, None), TargetNotFound, "the journal has no core of '='; the newest: "),
        ("", Where(None, None), UsageError, "coredumpctl: needs to know which core; use coredumpctl:last"),
    ],
)
def test_what_no_core_matches(
    kept: Kept, match: str, where: Where, error: Type[PostmortemError], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real journalctl's answers, each turned into a sentence."""
    monkeypatch.setenv("PATH", kept.systemd.path)
    with pytest.raises(error) as raised:
        coredumpctl.choose(match, where)
    assert raised.value.sentence().startswith(sentence)


def test_an_empty_journal(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory without one: no core, and where to look."""
    monkeypatch.setenv("PATH", kept.systemd.path)
    with pytest.raises(TargetNotFound, match="has no core"):
        coredumpctl.choose("last", Where(tmp_path, None))


def test_who_may_not_read_the_journal_is_told(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user: that it is a matter of rights, and which group helps."""
    monkeypatch.setenv("PATH", kept.systemd.strangers_path)
    with pytest.raises(PermissionRefused) as raised:
        coredumpctl.choose("last", Where())
    assert raised.value.next == "run as root, or join the group systemd-journal (usermod -aG systemd-journal NAME)"


def test_the_same_core_in_other_stores(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of apport's, a problem directory of abrt's, a directory with cores: one verdict and signature."""
    monkeypatch.setenv("PATH", kept.systemd.path)
    core = kept.systemd.seen(core_of(kept.locked))
    cores, problem = tmp_path / "cores", tmp_path / "ccpp-1"
    for folder in (cores, problem):
        folder.mkdir()
    shutil.copyfile(str(core), str(cores / "core.1.zst"))
    with unpacked.unpacked(core, lambda text: None) as plain:
        shutil.copyfile(str(plain.path), str(problem / "coredump"))
    for name, text in (("type", "CCpp"), ("time", "1700000000"), ("reason", "python3 killed by SIGABRT")):
        (problem / name).write_text(text)
    data = gzip.compress((problem / "coredump").read_bytes(), 1)
    lines = [b" " + base64.b64encode(data[at : at + (1 << 20)]) + b"\n" for at in range(0, len(data), 1 << 20)]
    (tmp_path / "x.crash").write_bytes(b"ProblemType: Crash\nSignal: 6\nCoreDump: base64\n" + b"".join(lines))
    targets = [str(path) for path in (tmp_path / "x.crash", problem, cores)]
    found = report(kept, *targets)["reports"]
    assert [one["origin"]["store"] for one in found] == ["apport", "abrt", "directory"]
    assert [one["trigger"]["signal"] for one in found] == ["SIGABRT"] * 3
    assert {one["verdict"] for one in found} == {"lock-order-deadlock"}
    assert len({one["signature"] for one in found}) == 1
    assert not any("/proc/" in gap["subject"] + gap["reason"] for one in found for gap in one["gaps"])


def forge(kept: Kept, fields: Dict[str, str], folder: Path) -> None:
    """A message from a user without any rights, by way of journald's own socket."""
    text = "".join(f"{name}={value}\n" for name, value in fields.items())
    (folder / "entry").write_text(text)
    words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "logger", "--journald"]
    with (folder / "entry").open("rb") as entry:
        subprocess.run(kept.systemd.inside(words), stdin=entry, timeout=60, check=True)
    kept.systemd.await_entry(int(fields["COREDUMP_PID"]))


def test_a_forged_entry(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal takes it from anybody, coredumpctl shows it: it displaces nothing, and asked for by its number it is
    analysed as unverified, with nothing of what it claims."""
    core = core_of_in(kept, kept.locked)
    claims = {
        "MESSAGE_ID": "fc2e22bc6ee647b6b90729ab34a250b1",
        "PRIORITY": "2",
        "MESSAGE": "Process 31337 (bank) dumped core.",
        "COREDUMP_PID": "31337",
        "COREDUMP_UID": "0",
        "COREDUMP_GID": "0",
        "COREDUMP_COMM": "bank",
        "COREDUMP_EXE": kept.python,
        "COREDUMP_UNIT": "tide.service",
        "COREDUMP_SIGNAL": "11",
        "COREDUMP_TIMESTAMP": "1700000000000000",
        "COREDUMP_CMDLINE": "bank --transfer",
        "COREDUMP_ROOT": "/tmp",
        "COREDUMP_FILENAME": core,
        "_UID": "0",
        "_EXE": "/usr/lib/systemd/systemd-coredump",
        "_SYSTEMD_UNIT": "systemd-coredump@1.service",
    }
    forge(kept, claims, tmp_path)
    assert "31337" in kept.systemd.run(["coredumpctl", "list", "--no-legend", "--no-pager"]).stdout
    monkeypatch.setenv("PATH", kept.systemd.path)
    for match, genuine in (("last", kept.inside), ("tide.service", kept.locked), (kept.python, kept.inside)):
        assert coredumpctl.choose(match, Where())[0].number("COREDUMP_PID") == genuine
    found = report(kept, "coredumpctl:31337")
    origin = found["origin"]
    assert (origin["trust"], origin["written_by"], origin["pid"]) == ("unverified", 65534, 31337)
    assert (origin["unit"], origin["command"], origin["signal"]) == (None, None, None)
    assert found["verdict"] == "lock-order-deadlock"
    assert "bank" not in json.dumps(found)
    said = " ".join(analyze(kept, "coredumpctl:31337").stdout.split())
    assert "Core said to be of PID 31337" in said
    assert "unverified: user 65534 wrote this into systemd's journal" in said
    forge(kept, {**claims, "COREDUMP_PID": "31338", "COREDUMP_FILENAME": "/etc/shadow"}, tmp_path)
    assert "keeps cores only in /var/lib/systemd/coredump" in analyze(kept, "coredumpctl:31338", status=1).stderr


def core_of_in(kept: Kept, pid: int) -> str:
    """Where the journal says that a core is, asked in the namespace."""
    listed = kept.systemd.run(["journalctl", "-o", "json", "--output-fields=COREDUMP_FILENAME", f"COREDUMP_PID={pid}"])
    name: str = json.loads(listed.stdout)["COREDUMP_FILENAME"]
    return name


def test_a_core_that_was_removed(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence: which core, that it is gone and why, what to do; then what the journal still knows. Status 1. The
    last test: the core is no more."""
    monkeypatch.setenv("PATH", kept.systemd.path)
    core = core_of(kept.fault)
    kept.systemd.seen(core).unlink()
    done = analyze(kept, f"coredumpctl:{kept.fault}", status=1)
    first, *more = done.stderr.splitlines()
    assert first.startswith(f"postmortem: the core of PID {kept.fault} (")
    assert f"is gone: {core} was removed; systemd-tmpfiles removes cores" in first
    assert done.stdout == ""
    assert any("look.py" in line for line in more)
    assert any("string_at" in line or "strlen" in line for line in more)
