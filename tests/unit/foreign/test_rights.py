"""Files read with another user's rights: really nothing more, and nobody can lay hands on the reader."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Optional, Tuple

import pytest

from postmortem.foreign import rights
from postmortem.foreign.children import Child
from postmortem.foreign.rights import Rights, as_json, of_json, of_status, of_user, take

from .users import NOBODY, SOMEBODY, as_root, as_user, open_folder

__all__ = ["open_folder"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"Uid": "7\t7\t7\t7", "Gid": "8\t8\t8\t8", "Groups": "8 9 "}, Rights(7, 8, (8, 9))),
        ({"Uid": "7\t7\t7\t7", "Gid": "8\t8\t8\t8"}, Rights(7, 8, ())),
        ({"Uid": "7\t0\t0\t0", "Gid": "8\t8\t8\t8"}, None),
        ({"Uid": "7\t7\t0\t7", "Gid": "8\t8\t8\t8"}, None),
        ({"Uid": "7\t7\t7\t7", "Gid": "8\t8\t8\t9"}, None),
        ({"Uid": "", "Gid": ""}, None),
        ({"Uid": "x x x x", "Gid": "8 8 8 8"}, None),
        ({"Gid": "8 8 8 8"}, None),
    ],
)
def test_whose_rights_a_process_has(status: Dict[str, str], expected: Optional[Rights]) -> None:
    """Its ids where all four agree; a set-user-id program acts for one user with the rights of another, and has none."""
    assert of_status(status) == expected


def test_rights_survive_json_and_nothing_else_becomes_rights() -> None:
    """They are written and read back; of anything else there are none."""
    known = Rights(1, 2, (3, 4))
    assert of_json(as_json(known)) == known
    for other in (None, [], [1], [1, -1], [1, 2, "3"], [True, True], [1, 2**32 - 1], {"uid": 0}, "12", [1.0, 2.0]):
        assert of_json(other) is None


def test_a_user_that_the_database_lacks_has_the_bare_ids() -> None:
    """Containers have such users; the root of this one is in its groups."""
    assert of_user(SOMEBODY) == Rights(SOMEBODY, SOMEBODY)
    assert 0 in of_user(0).groups


def _reading(of: Rights) -> Child:
    def serve(path: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
        if path == "groups":
            return sorted(os.getgroups()), (), None
        if path == "status":
            return Path("/proc/self/status").read_text(), (), None
        return Path(path).read_text(), (), None

    return Child(serve, prepare=lambda: take(of))


@as_root
def test_only_what_the_user_may_read_is_read(open_folder: Path) -> None:
    """Root's 0600 and another group's 0640 file stay closed, and so does a directory of root's; the user's own, those of its
    groups and everybody's are read."""
    ids = {"roots": (0, 0, 0o600), "group": (0, 4, 0o640), "own": (SOMEBODY, 0, 0o400), "mine": (0, 777, 0o640)}
    for name, (uid, gid, mode) in {**ids, "all": (0, 0, 0o644)}.items():
        (open_folder / name).write_text(name)
        os.chown(open_folder / name, uid, gid)
        os.chmod(open_folder / name, mode)
    (open_folder / "closed").mkdir(mode=0o700)
    (open_folder / "closed" / "all").write_text("x")
    found = {}
    with _reading(Rights(SOMEBODY, SOMEBODY, (777,))) as child:
        for name in ("roots", "group", "own", "mine", "all", "closed/all", "/etc/shadow"):
            try:
                found[name] = child.ask(str(open_folder / name), time.monotonic() + 9).value
            except OSError as exc:
                found[name] = errno.errorcode[exc.errno or 0]
        assert child.ask("groups", time.monotonic() + 9).value == [777]
    refused = dict.fromkeys(("roots", "group", "closed/all", "/etc/shadow"), "EACCES")
    assert found == {"own": "own", "mine": "mine", "all": "all", **refused}


@as_root
def test_the_rights_cannot_be_taken_back() -> None:
    """No capability is left in any set that could be used, and no new ones come with a program."""
    with _reading(Rights(SOMEBODY, SOMEBODY)) as child:
        status = child.ask("status", time.monotonic() + 9).value
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["0", "0", "0", str(SOMEBODY)]
    assert {int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert fields["NoNewPrivs"] == "1"


@as_root
def test_the_user_can_neither_signal_nor_trace_nor_look_into_the_reader() -> None:
    """With the user's own ids it could: kill(2), ptrace(2), /proc/PID/mem and /proc/PID/fd go by the real ones."""

    def trace(pid: int) -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.ptrace(16, pid, 0, 0) == -1  # PTRACE_ATTACH
        return ctypes.get_errno()

    with _reading(Rights(SOMEBODY, SOMEBODY)) as child:
        child.ask("groups", time.monotonic() + 9)
        attacks: Dict[str, Callable[[], Any]] = {
            "kill": lambda: os.kill(child.pid, signal.SIGKILL),
            "memory": lambda: os.open(f"/proc/{child.pid}/mem", os.O_RDWR),
            "descriptors": lambda: os.listdir(f"/proc/{child.pid}/fd"),
            "root": lambda: os.readlink(f"/proc/{child.pid}/root"),
        }
        assert {as_user(SOMEBODY, attack)[0] for attack in attacks.values()} == {"PermissionError"}
        assert as_user(SOMEBODY, lambda: trace(child.pid)) == errno.EPERM
        assert child.ask("groups", time.monotonic() + 9).value == []


@as_root
def test_a_user_without_root_reads_as_itself(open_folder: Path) -> None:
    """There is nothing to give up, whatever rights are asked for; and no error."""
    (open_folder / "roots").write_text("x")
    (open_folder / "roots").chmod(0o600)
    (open_folder / "all").write_text("x")

    def read() -> Any:
        take(Rights(SOMEBODY, SOMEBODY))
        readable = [os.access(open_folder / name, os.R_OK) for name in ("roots", "all")]
        return [os.getuid(), readable]

    assert as_user(NOBODY, read) == [NOBODY, [False, True]]


@as_root
def test_capabilities_beside_another_user_are_given_up_too(open_folder: Path) -> None:
    """An interpreter that may read everything without being root (setcap cap_dac_read_search) reads as its user."""
    (open_folder / "roots").write_text("x")
    (open_folder / "roots").chmod(0o600)

    def serve(path: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
        return Path(path).read_text(), (), None

    def become(then: Callable[[], object]) -> Callable[[], None]:
        def prepare() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            assert libc.prctl(8, 1, 0, 0, 0) == 0  # PR_SET_KEEPCAPS
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            header = ctypes.create_string_buffer((0x20080522).to_bytes(4, "little") + bytes(4))
            reads_all = (1 << 2).to_bytes(4, "little")  # CAP_DAC_READ_SEARCH
            assert libc.capset(header, ctypes.create_string_buffer(reads_all * 2 + bytes(16))) == 0
            then()

        return prepare

    path = str(open_folder / "roots")
    with Child(serve, prepare=become(lambda: None)) as able:
        assert able.ask(path, time.monotonic() + 9).value == "x"
    with Child(serve, prepare=become(lambda: take(Rights(NOBODY, NOBODY)))) as child, pytest.raises(PermissionError):
        child.ask(path, time.monotonic() + 9)


@as_root
def test_where_the_kernel_refuses_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that stay as they were, or capabilities that do, are an error: the reader ends before it has read anything."""

    class Deaf:
        def __getattr__(self, name: str) -> Callable[..., int]:
            return lambda *_: 0

    monkeypatch.setattr(rights, "_LIBC", Deaf())
    monkeypatch.setattr(os, "setgroups", lambda _groups: None)
    with pytest.raises(PermissionError, match="kept"):
        take(Rights(SOMEBODY, SOMEBODY))


@as_root
def test_a_containers_root_without_setgid_reads_for_itself() -> None:
    """Groups that are in force already need no capability to be set."""

    def serve(_request: Any) -> Tuple[Any, Iterable[bytes], Optional[int]]:
        return os.getgroups(), (), None

    def prepare() -> None:
        mine = tuple(os.getgroups())
        header = ctypes.create_string_buffer((0x20080522).to_bytes(4, "little") + bytes(4))
        assert ctypes.CDLL(None).capset(header, ctypes.create_string_buffer(24)) == 0
        take(Rights(0, 0, mine))

    with Child(serve, prepare=prepare) as child:
        assert child.ask(1, time.monotonic() + 9).value == os.getgroups()
