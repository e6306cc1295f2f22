"""When a lone core was dumped, by its name."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from postmortem.cores.dumptimes import dumped_at

BOOT, OTHER = "0123456789abcdef" * 2, "f" * 32


def name(boot: str, seconds: float, suffix: str = "") -> str:
    return f"/var/lib/systemd/coredump/core.my.app.1000.{boot}.4711.{int(seconds)}000000{suffix}"


def test_the_same_boot_tells_the_clocks() -> None:
    """The time in the name, and CLOCK_MONOTONIC at that time; whatever the codec, and with seconds as old releases have."""
    then = time.time() - 10
    for named in (name(BOOT, then), name(BOOT, then, ".zst"), name(BOOT, then)[: -len("000000")]):
        found = dumped_at(named, BOOT)
        assert found is not None and found.realtime == int(then)
        assert found.monotonic - found.realtime == pytest.approx(time.monotonic() - time.time(), abs=1.0)


def test_this_boot_is_known() -> None:
    """Without a boot, that of the running kernel."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
    assert dumped_at(name(boot, time.time())) is not None
    assert dumped_at(name(OTHER, time.time())) is None


@pytest.mark.parametrize(
    "named",
    [
        name(OTHER, time.time()),
        name(BOOT, 1_000_000_000),  # before the machine was started
        "core.4711",
        "core",
        "",
        "/tmp/x.core",
        f"core.app.1000.{BOOT}.4711.",
    ],
    ids=range(7),
)
def test_anything_else_is_unknown(named: str) -> None:
    """Another boot, a time before this one, names that tell nothing."""
    assert dumped_at(named, BOOT) is None
