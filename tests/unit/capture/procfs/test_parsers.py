"""The parsers of /proc, on lines that are hard to read."""

from __future__ import annotations

import os

import pytest

from postmortem.capture.procfs import parsers


def test_a_name_full_of_parentheses() -> None:
    """A process names itself; its last parenthesis ends the name."""
    line = b"17 (a) S 1 (b\n) R 4 5 6 0 -1 4194304 1 0 0 0 11 12 0 0 20 7 1 0 999 0 0\n"
    stat = parsers.parse_stat(line)
    assert (stat.comm, stat.state, stat.ppid, stat.pgid, stat.sid) == (b"a) S 1 (b\n", "R", 4, 5, 6)
    assert (stat.utime, stat.stime, stat.start, stat.nice) == (11, 12, 999, 7)


def test_a_thread_that_runs_has_no_system_call() -> None:
    """None; a thread outside any call has number -1 and no arguments; one inside has six."""
    assert parsers.parse_syscall(b"running\n") is None
    outside = parsers.parse_syscall(b"-1 0x7ffe 0x7f00\n")
    inside = parsers.parse_syscall(b"202 0x10 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe 0x7f00\n")
    assert outside is not None
    assert (outside.number, outside.args, outside.sp, outside.pc) == (-1, (), 0x7FFE, 0x7F00)
    assert inside is not None
    assert (inside.name, inside.args) == ("futex", (0x10, 0x189, 0, 0, 0, 0xFFFFFFFF))
    assert [named("98 0 0 0 0 0 0 0 0", machine) for machine in ("x86_64", "aarch64")] == ["getrusage", "futex"]
    assert named("98 0 0 0 0 0 0 0 0", "riscv64") == "syscall_98"


def named(line: str, machine: str) -> str:
    call = parsers.parse_syscall(line.encode(), machine)
    assert call is not None
    return call.name


def test_mappings_with_and_without_names() -> None:
    """Paths may hold spaces and an escaped newline; a line cut short is left out."""
    data = (
        b"1000-2000 r-xp 00003000 fd:01 42                         /a b\\012c (deleted)\n"
        b"2000-5000 rw-p 00000000 00:00 0 \n"
        b"ffff00000000-ffff00001000 rw-s 00000000 00:01 7    /dev/zero (deleted)\n"
        b"6000-70"
    )
    code, heap, shared = parsers.parse_maps(data)
    assert (code.start, code.end, code.offset, code.inode, code.name) == (
        0x1000,
        0x2000,
        0x3000,
        42,
        b"/a b\nc (deleted)",
    )
    assert (heap.size, heap.name, heap.shared) == (0x3000, b"", False)
    assert shared.shared


def test_bytes_become_unicode_that_json_takes() -> None:
    """What is no UTF-8 is written out, what is stays."""
    assert parsers.text("é".encode() + b"\xff") == "é\\xff"
    parsers.text(bytes(range(256))).encode("utf-8")


def test_a_file_is_read_to_its_end() -> None:
    """Also one that the kernel hands out in many pieces."""
    reading, writing = os.pipe()
    for piece in (b"a" * 10, b"b" * 5000, b"c" * 100):
        os.write(writing, piece)
    os.close(writing)
    assert parsers.read_all(reading) == b"a" * 10 + b"b" * 5000 + b"c" * 100
    os.close(reading)


def test_this_process_reads_as_itself() -> None:
    """The parsers agree with what the interpreter knows about itself."""
    me = os.getpid()
    stat = parsers.stat(f"/proc/{me}")
    assert (stat.ppid, stat.pgid, stat.sid) == (os.getppid(), os.getpgrp(), os.getsid(0))
    assert parsers.threads(me)[0] == me == parsers.living_thread(me)
    assert parsers.status(f"/proc/{me}")["Pid"] == str(me)
    with pytest.raises(OSError, match="No such"):
        parsers.threads(1 << 30)
