"""The samples of the observation window in speedscope's format (https://www.speedscope.app), one profile per thread.

The format is speedscope's file-format-schema.json (version 1.25.0). Weights are numbers of samples, because the time
between a thread's samples is unknown. Equal stacks are merged, at the position of the first.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ...evidence import Evidence
from ...findings import Diagnosis
from ..result import Result
from . import json_text, sampled

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def render(evidence: Evidence, _diagnosis: Diagnosis) -> str:
    """Render the samples; raise NothingToShow without any."""
    return _document(sampled.of_one(evidence), evidence.tool_version)


def render_many(results: Sequence[Result]) -> str:
    """Render the samples of several targets; target names precede process names."""
    return _document(sampled.of_many(results), results[0][1].tool_version)


def _document(profiles: Sequence[sampled.Profile], version: str) -> str:
    frames: Dict[sampled.Place, int] = {}
    several = len({profile.owner for profile in profiles}) > 1
    drawn = [_profile(profile, frames, several) for profile in profiles]
    return json_text.dump(
        {
            "$schema": _SCHEMA,
            "exporter": f"postmortem@{version}" if version else "postmortem",
            "name": profiles[0].owner,
            "activeProfileIndex": 0,
            "shared": {"frames": [_frame(place) for place in frames]},
            "profiles": drawn,
        }
    )


def _profile(profile: sampled.Profile, frames: Dict[sampled.Place, int], several: bool) -> Dict[str, Any]:
    samples: List[List[int]] = [[frames.setdefault(p, len(frames)) for p in seen.places] for seen in profile.seen]
    return {
        "type": "sampled",
        "name": f"{profile.owner}, {profile.thread}" if several else profile.thread,
        "unit": "none",
        "startValue": 0,
        "endValue": sum(seen.times for seen in profile.seen),
        "samples": samples,
        "weights": [seen.times for seen in profile.seen],
    }


def _frame(place: sampled.Place) -> Dict[str, Any]:
    found: Dict[str, Any] = {"name": place.function}
    if place.file is not None:
        found["file"] = place.file
    if place.line is not None:
        found["line"] = place.line
    return found
