"""Failed steps of a capture become gaps."""

from __future__ import annotations

from typing import Any, Dict, Optional

from postmortem.evidence import Gap
from postmortem.extract.recorded.shortcomings import end_gaps, step_gaps

from ....support.inwords import reason, remedy


def step(name: str, subject: str, error: Optional[str] = None, remedy: Optional[str] = None) -> Dict[str, Any]:
    return {"step": name, "subject": subject, "ok": error is None, "error": error, "remedy": remedy}


def refused(pid: int) -> Dict[str, Any]:
    return step("core", f"process {pid}", f"ptrace of process {pid} is refused", "add SYS_PTRACE")


def test_a_core_by_the_kernel_makes_up_for_ours() -> None:
    """The refusal is no shortcoming of a process whose core the kernel wrote; where that failed too, both are."""
    steps = [
        refused(1),
        refused(2),
        step("kernel-core", "process 1"),
        step("kernel-core", "process 2", "no file"),
    ]
    assert [(gap.source, gap.subject) for gap in step_gaps({"steps": steps})] == [
        ("core", "process 2"),
        ("kernel-core", "process 2"),
    ]


def test_a_manifest_may_be_anything() -> None:
    """Strangers' manifests: what is no step is passed over, what lacks words still counts as failed."""
    assert step_gaps({}) == []
    assert step_gaps({"steps": 7}) == []
    assert step_gaps({"steps": [None, {"ok": False}, {"ok": True, "left_out": 5}]}) == [
        Gap("None", "capture", "failed", None, "step-failed"),
        Gap("None", "capture", "5", None, "step-failed"),
    ]


def test_a_capture_without_an_end_was_cut_short() -> None:
    """Killed before its core, it says after which step; one that came to its end, whatever failed on the way, does not."""
    steps = [step("processes", "the tree"), step("window", "the tree", "no time")]
    (gap,) = end_gaps({"steps": steps})
    assert "cut short after step 'window' of the tree" in reason(gap) and remedy(gap)
    assert "before its first step" in reason(end_gaps({})[0])
    assert "before its first step" in reason(end_gaps({"steps": 7, "timings": {}})[0])
    assert end_gaps({"steps": steps, "timings": {"observe_s": 1.0, "pause_s": None}}) == []
