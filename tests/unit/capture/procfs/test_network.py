"""The kernel's socket tables, as text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from postmortem.capture.procfs import network

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


@pytest.mark.skipif(sys.byteorder != "little", reason="the kernel prints addresses in the machine's order")
def test_addresses() -> None:
    """IPv4 plain, IPv6 in brackets; words in the machine's byte order."""
    assert network.address("0100007F:1F90") == "127.0.0.1:8080"
    assert network.address("00000000000000000000000001000000:0016") == "[::1]:22"
    assert network.address("B80D01200000000067452301EFCDAB89:0050") == "[2001:db8::123:4567:89ab:cdef]:80"


def test_only_wanted_inodes_are_kept_and_damage_is_passed_over(tmp_path: Path) -> None:
    """A table may hold other people's sockets, and lines that no parser knows."""
    row = "   0: 0100007F:1F90 0100007F:C001 01 00000007:00000009 00:00000000 00000000  1000        0 {} 1 0\n"
    (tmp_path / "tcp").write_text(HEADER + row.format(11) + "nonsense\n" + row.format(12))
    (tmp_path / "unix").write_text(
        "Num RefCount Protocol Flags Type St Inode Path\n"
        "0000: 00000002 00000000 00010000 0001 01 21 /run/a b.sock\n"
        "0000: 00000003 00000000 00000000 0001 03 22\n"
    )
    found = network.find_sockets(str(tmp_path), {"12", "21", "22"})
    assert set(found) == {"12", "21", "22"}
    assert found["12"] == {
        "proto": "tcp",
        "local": "127.0.0.1:8080",
        "remote": "127.0.0.1:49153",
        "state": "ESTABLISHED",
        "rx_queue": 9,
        "tx_queue": 7,
    }
    assert (found["21"]["path"], found["21"]["state"]) == ("/run/a b.sock", "LISTEN")
    assert (found["22"]["path"], found["22"]["state"]) == (None, "ESTABLISHED")
