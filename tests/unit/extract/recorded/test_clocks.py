"""The clocks at the stop, from a bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postmortem.extract.recorded.clocks import NO_CLOCKS, Clocks, read_clocks
from postmortem.foreign.held import Folder


@pytest.mark.parametrize(
    ("written", "clocks"),
    [
        ('{"realtime": 1.5, "monotonic": 2.5, "boot_id": "x"}', Clocks(1.5, 2.5)),
        ('{"realtime": 1.5, "monotonic": null, "boot_id": null}', Clocks(1.5, None)),
        ('{"realtime": "soon", "monotonic": [1]}', NO_CLOCKS),
        ('{"realtime": NaN, "monotonic": 1e999}', NO_CLOCKS),
        ("[]", NO_CLOCKS),
        ("{", NO_CLOCKS),
    ],
)
def test_what_is_damaged_is_unknown(written: str, clocks: Clocks, tmp_path: Path) -> None:
    """Each clock for itself."""
    file = tmp_path / "raw" / "proc" / "7" / "stop.json"
    file.parent.mkdir(parents=True)
    file.write_text(written)
    with Folder.at(str(tmp_path)) as folder:
        assert (read_clocks(folder, 7), read_clocks(folder, 8)) == (clocks, NO_CLOCKS)
        assert read_clocks(folder, 7, 150) == clocks._replace(started=1.5)


def test_times_until() -> None:
    """Negative once it has passed; unknown without the clock or the time."""
    clocks = Clocks(1_000.0, None)
    assert (clocks.until_date(1_000.25), clocks.until_date(998.0)) == (0.25, -2.0)
    assert (clocks.until(5.0), clocks.until_date(None)) == (None, None)
    assert json.dumps(Clocks(1.0, 2.0, 0).until(10.7)) == "9.0"
