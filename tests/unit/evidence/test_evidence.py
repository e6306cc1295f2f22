"""Evidence as JSON, both ways."""

from __future__ import annotations

import os

from postmortem.evidence import Evidence, Gap, NativeFrame, Process, Thread, Trigger, decode, encode


def test_paths_that_are_no_utf8_can_be_written() -> None:
    """A mapped file may be called by any bytes: they come out as escapes, and everything else as it was."""
    path = os.fsdecode(b"/opt/caf\xe9/libx.so")
    frame = NativeFrame("work", path, 0x1000)
    process = Process(pid=7, threads=(Thread(tid=7, stack=(frame,)),))
    found = Evidence(Trigger("core"), (process,), (Gap("core", path, "not found"),), {path: {3: "text \udcff"}})
    read = decode(encode(found))
    escaped = "/opt/caf\\udce9/libx.so"
    assert read.processes[0].threads[0].native[0].module == escaped
    assert read.gaps[0].subject == escaped
    assert read.sources == {escaped: {3: "text \\udcff"}}
    assert decode(encode(read)) == read


def test_only_large_evidence_is_compact() -> None:
    """People may read the usual; what is large must stay below the limit of its readers."""
    small = Evidence(Trigger("core"))
    large = Evidence(Trigger("core"), sources={"/app/program.py": {1: "x" * (16 << 20)}})
    assert (encode(small).count(b"\n") > 1, encode(large).count(b"\n")) == (True, 0)
    assert decode(encode(large)) == large
