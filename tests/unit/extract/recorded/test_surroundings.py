"""Control groups and the machine over the window, of version 2 and 1, from the kernel's files as the capture kept them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from postmortem.evidence import ControlGroup
from tests.support.bundles import surroundings_of

PSI = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={}"


def group(tmp_path: Path, places: Dict[str, str], cgroups: Dict[str, Any]) -> Optional[ControlGroup]:
    (tmp_path / "m.json").write_text(json.dumps({"seconds": 2.0, "processes": {"7": places}, "cgroups": cgroups}))
    return surroundings_of(tmp_path / "m.json").control_group(7)


def ends(before: Dict[str, str], after: Optional[Dict[str, str]] = None) -> Dict[str, Dict[str, str]]:
    return {"before": before, "after": {**before, **(after or {})}}


def test_version_2_throttled_by_a_group_above(tmp_path: Path) -> None:
    """The quota of the slice holds back what runs in a service of it, whose own file has no quota."""
    found = group(
        tmp_path,
        {"": "/app.slice/web"},
        {
            "": {
                "/app.slice/web": ends(
                    {
                        "cpu.stat": "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0",
                        "cpu.max": "max 100000",
                        "cgroup.events": "populated 1\nfrozen 0",
                        "memory.max": "max",
                        "memory.current": "1000",
                        "memory.events": "oom 0\noom_kill 1",
                        "memory.pressure": PSI.format(1000000, 500000),
                    },
                    {"memory.events": "oom 1\noom_kill 2", "memory.pressure": PSI.format(2000000, 1000000)},
                ),
                "/app.slice": ends(
                    {
                        "cpu.stat": "nr_periods 10\nnr_throttled 10\nthrottled_usec 1000000",
                        "cpu.max": "50000 100000",
                        "memory.max": "4096",
                        "memory.current": "4000",
                    },
                    {"cpu.stat": "nr_periods 30\nnr_throttled 25\nthrottled_usec 2500000"},
                ),
            }
        },
    )
    assert found == ControlGroup(
        path="/app.slice/web",
        frozen=False,
        cpu_quota=0.5,
        throttled=0.75,
        throttled_s=1.5,
        memory_limit=4096,
        memory_used=4000,
        oom_kills=1,
        stalls={"memory some": 0.5, "memory full": 0.25},
    )


def test_version_1_frozen_and_throttled(tmp_path: Path) -> None:
    """Each controller has a hierarchy of its own; throttled_time counts nanoseconds."""
    found = group(
        tmp_path,
        {"": "/", "freezer": "/jail", "cpu": "/slow", "memory": "/"},
        {
            "freezer": {"/jail": ends({"freezer.state": "THAWED"}, {"freezer.state": "FROZEN"})},
            "cpu": {
                "/slow": ends(
                    {
                        "cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0",
                        "cpu.cfs_quota_us": "20000",
                        "cpu.cfs_period_us": "100000",
                    },
                    {"cpu.stat": "nr_periods 4\nnr_throttled 4\nthrottled_time 300000000"},
                ),
                "/": ends({"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}),
            },
            "memory": {"/": ends({"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "77"})},
        },
    )
    assert found is not None
    assert (found.path, found.frozen, found.cpu_quota) == ("/slow", True, 0.2)
    assert (found.throttled, found.throttled_s) == (1.0, 0.3)
    assert (found.memory_limit, found.memory_used, found.oom_kills) == (None, 77, None)


def test_what_is_not_known_is_not_denied(tmp_path: Path) -> None:
    """No file, no answer: not "not frozen", not "not throttled"."""
    found = group(tmp_path, {"": "/x"}, {"": {"/x": ends({"memory.current": "5"})}})
    assert found == ControlGroup(path="/x", memory_used=5)
    assert group(tmp_path, {"": "/x"}, {}) is None
    assert group(tmp_path, {}, {"": {"/x": ends({"memory.current": "5"})}}) is None


@pytest.mark.parametrize(
    ("places", "cgroups", "frozen"),
    [
        ({"": "/"}, {"": {"/": ends({})}}, False),  # the top has no file for it
        ({"": "/", "freezer": "/"}, {"freezer": {"/": ends({})}}, False),  # version 2 is not mounted
        ({"": "/", "freezer": "/a"}, {"": {"/": ends({})}}, None),  # version 1's freezer is out of sight
        ({"": "/b", "freezer": "/"}, {"freezer": {"/": ends({})}}, None),
        ({"": "/b", "freezer": "/a"}, {"freezer": {"/a": ends({"freezer.state": "FREEZING"})}}, True),
    ],
)
def test_frozen_is_known_only_where_every_freezer_was_seen(
    tmp_path: Path, places: Dict[str, str], cgroups: Dict[str, Any], frozen: Optional[bool]
) -> None:
    """One that says yes is enough; no takes all of them."""
    found = group(tmp_path, places, cgroups)
    assert found is not None and found.frozen is frozen


def test_the_machine_over_the_window(tmp_path: Path) -> None:
    """Bytes from kilobytes and pages, stalls as a share of the window, steal of all CPU time."""
    before = {
        "loadavg": "9.50 2.00 1.00 4/500 77",
        "meminfo": "MemTotal:  2048 kB\nMemAvailable: 1024 kB\nSwapFree: 0 kB",
        "vmstat": "pswpin 1\npswpout 5\noom_kill 0",
        "stat": "cpu  100 0 100 800 0 0 0 0 0 0",
        "pressure/io": PSI.format(0, 0),
    }
    after = {
        "vmstat": "pswpin 3\npswpout 5\noom_kill 1",
        "stat": "cpu  150 0 100 800 0 0 0 50 0 0",
        "pressure/io": PSI.format(1000000, 0),
    }
    (tmp_path / "m.json").write_text(json.dumps({"seconds": 2.0, "machine": ends(before, after)}))
    found = surroundings_of(tmp_path / "m.json").machine()
    assert found is not None
    assert (found.load, found.memory, found.available, found.swap_free) == (9.5, 2 << 20, 1 << 20, 0)
    assert (found.swapped_in, found.swapped_out, found.oom_kills, found.steal) == (8192, 0, 1, 0.5)
    assert found.stalls == {"io some": 0.5, "io full": 0.0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 5000,
        '{"machine": 5, "cgroups": 5, "processes": {"7": 3}}',
        '{"machine": {"after": {"stat": "cpu x", "loadavg": "?", "meminfo": "a b c\\nMemTotal: 1"}}}',
        '{"seconds": "x", "processes": {"7": {"": "/a"}}, "cgroups": {"": {"/a": {"before": [], "after": {"cpu.max": 7}}}}}',
        '{"seconds": 0, "processes": {"7": {"": "/a"}}, "cgroups": {"": {"/a": {"after": {"cpu.max": "1 0"}}}}}',
    ],
)
def test_damaged_files_say_nothing(tmp_path: Path, text: str) -> None:
    """A bundle may be cut short, or written by an enemy: unknown, never an error."""
    (tmp_path / "m.json").write_text(text)
    around = surroundings_of(tmp_path / "m.json")
    machine, mine = around.machine(), around.control_group(7)
    assert machine is None or (machine.load, machine.memory, machine.steal) == (None, None, None)
    assert mine is None or (mine.frozen, mine.cpu_quota, mine.throttled) == (None, None, None)


def test_what_was_pushed_out_and_read_again(tmp_path: Path) -> None:
    """Pages of the process's own group: the sums of version 1, the counters of version 2, before Linux 5.9 one and since two."""
    old = "workingset_refault_file 1\ntotal_workingset_refault_anon 0\ntotal_workingset_refault_file {}"
    found = group(
        tmp_path,
        {"memory": "/job"},
        {
            "memory": {
                "/job": ends({"memory.stat": old.format(5)}, {"memory.stat": old.format(8)}),
                "/": ends({"memory.stat": old.format(5)}, {"memory.stat": old.format(900)}),
            }
        },
    )
    assert found is not None and found.refaulted == 3 * 4096
    for rows in ("workingset_refault {0}", "workingset_refault_anon {0}\nworkingset_refault_file {0}"):
        stat = ends({"memory.stat": rows.format(1)}, {"memory.stat": rows.format(3)})
        found = group(tmp_path, {"": "/a"}, {"": {"/a": stat}})
        assert found is not None and found.refaulted == 2 * 4096 * len(rows.splitlines())
    found = group(tmp_path, {"": "/a"}, {"": {"/a": ends({"memory.current": "1"})}})
    assert found is not None and found.refaulted is None


def test_above_high_a_group_is_made_to_wait(tmp_path: Path) -> None:
    """memory.high is the limit that is felt, when it is below memory.max."""
    files = {"memory.max": "2000", "memory.high": "1000", "memory.current": "990"}
    found = group(tmp_path, {"": "/a"}, {"": {"/a": ends(files)}})
    assert found is not None and (found.memory_limit, found.memory_used) == (1000, 990)


def test_numbers_that_no_kernel_writes(tmp_path: Path) -> None:
    """Digits of other scripts, and more than evidence may hold, are unknown; what stands beside them is not."""
    files = {
        "cpu.max": "9223372036854775807 1",
        "memory.max": "\u0663",
        "memory.current": "4096",
        "cpu.stat": "nr_periods ²",
    }
    found = group(tmp_path, {"": "/a"}, {"": {"/a": ends(files)}})
    assert found is not None
    assert (found.cpu_quota, found.memory_limit, found.memory_used, found.throttled) == (None, None, 4096, None)
