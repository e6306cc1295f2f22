"""Processes beyond the tree that have its semaphores in memory, in a /proc made here."""

from __future__ import annotations

from pathlib import Path

from postmortem.capture.procfs.sharers import files_of, sharers_json

MINE = ["7f00-7f01 rw-s 00000000 00:1b 77                      /dev/shm/sem.abc (deleted)"]
STAT = "{pid} (x) {state} 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0" + " 0" * 30


def proc(folder: Path, pid: int, maps: str | None, start: int = 100, state: str = "S", flags: int = 0) -> None:
    base = folder / str(pid)
    base.mkdir(parents=True)
    (base / "stat").write_text(STAT.format(pid=pid, state=state, start=start, flags=flags))
    if maps is not None:
        (base / "maps").write_text(maps)


def test_a_semaphore_is_known_by_device_and_inode() -> None:
    """Its path differs between the process that made it and those that opened it."""
    assert files_of([*MINE, "7f02-7f03 rw-p 00000000 00:00 0", "7f04-7f05 r--p 00000000 08:01 9 /lib/x.so"]) == {
        "00:1b:77"
    }
    assert files_of(None) == set()


def test_others_that_map_it_are_named(tmp_path: Path) -> None:
    """By pid; a process of the tree is none of them, and other files do not count."""
    proc(tmp_path, 10, MINE[0])
    proc(tmp_path, 20, MINE[0].replace("sem.abc (deleted)", "sem.mp-1"))
    proc(tmp_path, 30, MINE[0].replace(" 77 ", " 78 "))
    assert sharers_json(10, {10: MINE}, str(tmp_path)) == {
        "beyond": {"00:1b:77": [20]},
        "unread": 0,
        "not_looked_at": 0,
    }


def test_a_tree_without_semaphores_needs_no_look(tmp_path: Path) -> None:
    """Nothing is read, so nothing has to be there."""
    assert sharers_json(10, {10: ["7f02-7f03 rw-p 00000000 00:00 0"], 11: None}, str(tmp_path / "none")) is None


def test_what_may_not_be_read_is_counted(tmp_path: Path) -> None:
    """But not kernel threads, the dead, and those who are older than the tree and were given nothing by it."""
    proc(tmp_path, 10, MINE[0], start=100)
    proc(tmp_path, 21, None, start=150)
    proc(tmp_path, 22, None, start=50)
    proc(tmp_path, 23, None, start=150, flags=0x00200000)
    proc(tmp_path, 24, None, start=150, state="Z")
    found = sharers_json(10, {10: MINE}, str(tmp_path))
    assert found is not None
    assert found["unread"] == 1
