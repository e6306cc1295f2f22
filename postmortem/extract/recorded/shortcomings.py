"""Gaps for steps of a capture that failed or left something out."""

from __future__ import annotations

from typing import Any, Dict, List

from ...evidence import Gap


def step_gaps(manifest: Dict[str, Any]) -> List[Gap]:
    """Return gaps in the order of the steps; the manifest is untrusted."""
    listed = _steps(manifest)
    by_kernel = {
        str(step.get("subject")) for step in listed if step.get("step") == "kernel-core" and step.get("ok") is True
    }
    found: List[Gap] = []
    for step in listed:
        if step.get("step") == "core" and str(step.get("subject")) in by_kernel:
            continue  # the kernel has written this core
        found += _gaps(step)
    return found


def end_gaps(manifest: Dict[str, Any]) -> List[Gap]:
    """Return a gap if the capture was cut short: its timings, which it notes last, are missing."""
    timings = manifest.get("timings")
    if isinstance(timings, dict) and "pause_s" in timings:
        return []
    steps, subject = _steps(manifest), "the whole capture"
    if not steps:
        return [Gap("capture", subject, code="capture-not-begun")]
    step, of = repr(steps[-1].get("step")), str(steps[-1].get("subject"))
    return [Gap.of("capture", subject, "capture-cut-short", step=step, of=of)]


def _steps(manifest: Dict[str, Any]) -> List[Dict[str, Any]]:
    steps = manifest.get("steps")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _gaps(step: Dict[str, Any]) -> List[Gap]:
    failure = (step.get("error") or "failed") if step.get("ok") is False else None
    subject, remedy = str(step.get("subject") or "capture"), step.get("remedy")
    return [
        Gap(str(step.get("step")), subject, str(reason), str(remedy) if remedy else None, code="step-failed")
        for reason in (step.get("left_out"), failure)
        if reason
    ]
