"""Reading back what the script inside gdb wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Optional

from postmortem.native.stacks import EndsEarly, Transcript, read_transcript, to_frames


def frame(address: int, function: Optional[str] = "f", module: Optional[str] = "/lib/a.so") -> Dict[str, Any]:
    return {"function": function, "module": module, "address": address, "file": None, "line": None}


def stack(tid: object, *frames: Dict[str, Any], error: Optional[str] = None) -> Dict[str, Any]:
    return {"tid": tid, "frames": list(frames), "error": error}


def transcript(tmp_path: Path, *values: object, tail: bytes = b"") -> Transcript:
    path = tmp_path / "stacks.jsonl"
    path.write_bytes(b"".join(json.dumps(value).encode() + b"\n" for value in values) + tail)
    return read_transcript(path)


def test_a_whole_transcript(tmp_path: Path) -> None:
    """Version, number of threads, stacks, errors and the end all come through."""
    found = transcript(
        tmp_path,
        {"gdb": "13.1", "threads": 2},
        stack(7, frame(1)),
        stack(8, error="corrupt"),
        {"end": True, "seconds": 1},
    )
    assert (found.version, found.announced, found.complete, found.damaged) == ("13.1", 2, True, 0)
    assert sorted(found.stacks) == [7, 8]
    assert found.errors == {8: EndsEarly("corrupt")}


def test_a_transcript_cut_in_the_middle_of_a_line(tmp_path: Path) -> None:
    """The whole lines count, the half one is counted as damaged, and the end is missing."""
    found = transcript(tmp_path, {"gdb": "13.1", "threads": 2}, stack(7, frame(1)), tail=b'{"tid":8,"fra')
    assert list(found.stacks) == [7]
    assert (found.complete, found.damaged) == (False, 1)


def test_lines_of_another_shape_are_left_out(tmp_path: Path) -> None:
    """A line with wrong types, no UTF-8 or no JSON costs only itself."""
    found = transcript(
        tmp_path, stack("x"), [1, 2], {"tid": 9, "frames": [{"address": "high"}]}, stack(7, frame(1)), tail=b"\xff\n"
    )
    assert list(found.stacks) == [7]
    assert found.damaged == 4


def test_no_file_is_an_empty_transcript(tmp_path: Path) -> None:
    """gdb may end before it opens its output."""
    found = read_transcript(tmp_path / "nothing")
    assert (found.version, found.stacks, found.complete) == (None, {}, False)


def test_a_second_look_replaces_the_first_unless_it_saw_less(tmp_path: Path) -> None:
    """After all libraries are loaded a stack is written again: whole ones win, shorter failures do not."""
    better = transcript(tmp_path, stack(7, frame(1), error="broke"), stack(7, frame(1), frame(2)))
    assert (len(better.stacks[7]), better.errors) == (2, {})
    worse = transcript(tmp_path, stack(7, frame(1), frame(2), error="broke"), stack(7, error="broke at once"))
    assert (len(worse.stacks[7]), worse.errors) == (2, {7: EndsEarly("broke")})


def test_the_script_may_stop_by_itself(tmp_path: Path) -> None:
    """Its reason is kept, and the run is not complete."""
    found = transcript(tmp_path, stack(7, frame(1)), {"end": False, "seconds": 1.5, "stopped": "out of time"})
    assert (found.complete, found.stopped) == (False, "out of time")


def test_modules_are_named_by_the_core(tmp_path: Path) -> None:
    """What the core maps at an address beats what gdb opened for it (a sysroot's path); gdb's name fills in."""
    found = transcript(tmp_path, stack(7, frame(1, module="/sysroot/lib/a.so"), frame(2, module="/lib/b.so")))
    frames = to_frames(found.stacks, {1: "/lib/a.so"}.get, lambda module, known: False)[7]
    assert [f.module for f in frames] == ["/lib/a.so", "/lib/b.so"]
    assert {f.trust for f in frames} == {"unwind"}


def test_frames_beyond_blind_code_are_guesses(tmp_path: Path) -> None:
    """The frame in code without unwind tables is sure, everything that called it is trust "scan"."""
    found = transcript(tmp_path, stack(7, frame(1), frame(2, None, None), frame(3)), stack(8, frame(3)))
    frames = to_frames(found.stacks, lambda address: None, lambda module, known: not known)
    assert [f.trust for f in frames[7]] == ["unwind", "unwind", "scan"]
    assert [f.trust for f in frames[8]] == ["unwind"]


def test_guesses_that_lead_nowhere_are_cut_off(tmp_path: Path) -> None:
    """Frames in no file at the end of a guessed stack are noise; one in the middle, or a sure one, stays."""
    nowhere = [frame(address, None, None) for address in range(100, 105)]
    found = transcript(
        tmp_path, stack(7, frame(1), nowhere[0], nowhere[1], frame(2), *nowhere[2:]), stack(8, nowhere[0])
    )
    frames = to_frames(found.stacks, lambda address: None, lambda module, known: not known)
    assert [f.address for f in frames[7]] == [1, 100, 101, 2]
    assert [f.address for f in frames[8]] == [100]
