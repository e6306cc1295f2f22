"""tools.offsets: every field is measured or named as not in headers; rows are formatted, parsed and compared."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Dict, List

import pytest

from postmortem.cpython.runtime import debugoffsets, releases
from postmortem.cpython.runtime.layouts import Layout
from tools import offsets

from ..support import required

V312 = releases.LAYOUTS[(3, 12)]


def row_of(layout: Layout) -> Dict[str, Any]:
    """Return a row that headers would tell: all fields of a layout but the version and what is elsewhere."""
    names = [field.name for field in fields(Layout) if field.name != "version" and field.name not in offsets.ELSEWHERE]
    return {name: getattr(layout, name) for name in names}


def evaluated(source: str, **names: Any) -> Dict[str, Any]:
    """Run a printed row."""
    scope: Dict[str, Any] = {**names}
    exec(source, scope)
    return scope


def test_every_field_of_a_row_is_measured_or_named_as_elsewhere() -> None:
    """A field that is added to Layout is added to the tool; nothing is measured that no row has."""
    known = [*offsets.OFFSETS, *offsets.EXPRESSIONS, *offsets.DERIVED, *offsets.ELSEWHERE]
    assert len(known) == len(set(known))
    assert set(known) == {field.name for field in fields(Layout)} - {"version"}


def test_a_row_that_differs_is_named_field_by_field() -> None:
    """One line each, with both values; nothing for a row that agrees."""
    row = row_of(V312)
    assert offsets.differences(row, V312) == []
    said = offsets.differences(row, replace(V312, is_id=16, long_tag=False))
    assert said == ["is_id: the row has 16, the headers say 8", "long_tag: the row has False, the headers say True"]


def test_a_printed_row_can_be_pasted() -> None:
    """On top of its predecessor's it is the same row, and states only what differs from that."""
    printed = offsets.paste((3, 12), row_of(V312)).split("\n\n")[0]
    assert "is_id=8" in printed and "rt_interpreters_main" not in printed
    assert evaluated(printed, _V311=releases._V311)["_V312"] == {**releases._V311, **offsets.entries(
        row_of(V312), releases.LAYOUTS[(3, 11)]), "version": (3, 12)}  # fmt: skip
    assert max(map(len, printed.splitlines())) <= 120


def test_a_first_row_states_all_that_has_no_default() -> None:
    """3.8 begins its file: what is missing is what headers do not tell."""
    layout = releases.LAYOUTS[(3, 8)]
    stated = evaluated(offsets.paste((3, 8), row_of(layout)))["_V308"]
    elsewhere = {name: getattr(layout, name) for name in offsets.ELSEWHERE}
    assert Layout(**{**stated, **elsewhere}) == layout


@pytest.mark.parametrize("version", sorted(releases.FREE_THREADED))
def test_a_free_threaded_entry_states_what_does_not_follow(version: offsets.Version) -> None:
    """The printed entry is the one that releases.py has."""
    default, row = row_of(releases.LAYOUTS[version]), row_of(releases.FREE_THREADED[version])
    printed = offsets.paste_free_threaded(version, default, row)
    assert evaluated(f"row = {{{printed}}}")["row"] == {version: releases._FREE_THREADED[version]}


def test_a_release_of_the_future_is_formatted_on_top_of_the_newest() -> None:
    """An invented one, with a free-threaded build, neither of which has a row."""
    newest = releases.LAYOUTS[max(releases.LAYOUTS)]
    future = (3, newest.version[1] + 1)
    moved, moved_too = row_of(replace(newest, is_next=8000)), row_of(releases.derived(newest, {"is_next": 8000}))
    assert offsets.predecessor(future, moved) == newest.version
    assert f"        version={future},\n        is_next=8000," in offsets.paste(future, moved)
    assert "is_next" not in offsets.paste_free_threaded(future, moved, moved_too)
    assert offsets.row_for(future, free_threaded=False) is None


def test_errors_of_a_compiler_are_told_apart() -> None:
    """Those of an expression are absent fields; all others say that the headers do not compile."""
    messages = (
        "expression: In function 'e2':\n"
        "expression:2:48: error: 'PyThreadState' has no member named 'cframe'\n"
        "expression:7:48: error: unknown type name '_PyCFrame'\n"
        "/x/Python.h:3:10: fatal error: patchlevel.h: No such file or directory\n"
        "expression:9:1: warning: something\n"
    )
    numbers, elsewhere = offsets.errors_of(messages)
    assert numbers == [2, 7]
    assert elsewhere == ["/x/Python.h:3:10: fatal error: patchlevel.h: No such file or directory"]


def test_the_first_expression_that_compiles_counts() -> None:
    """What printed nothing is -1 for an offset, and not told for a value; flags become bool."""
    tried = [("is_id", "a"), ("is_id", "b"), ("long_tag", "c"), ("co_varnames", "d"), ("co_lnotab", "e")]
    row = offsets.told(tried, "1 24\n2 99\n3 1\n4 72\n5 8\n")
    assert (row["is_id"], row["long_tag"], row["fr_code"]) == (24, True, -1)
    assert (row["co_local_names"], row["line_table"]) == ((72,), "lnotab")
    assert "gen_created" in offsets.untold(row) and "FutureObj" in offsets.untold(row)["fut_state"]


DECLARED = """typedef struct _Py_DebugOffsets {
    char cookie[8] _Py_NONSTRING;
    uint64_t version;
    // Thread state offset;
    struct _thread_state{
        uint64_t size;  /* of all */
        uint64_t next;
    } thread_state;
    struct {
        uint64_t exc_value;
    } err_stackitem;
} _Py_DebugOffsets;
"""


def test_published_offsets_are_parsed_from_their_declaration() -> None:
    """Section by section, named or anonymous; nothing where there is no such struct."""
    thread, item = offsets.parse_shape(DECLARED)
    assert thread == ("thread_state", ("size", "next"))
    assert item == ("err_stackitem", ("exc_value",))
    assert offsets.parse_shape("struct _Py_Other { int x; };") == ()


def test_a_section_with_another_number_of_words_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of words is what the reader relies on; a release without a row says so."""
    shape = (("thread", "size prev next"), ("handled", "exc_value"), ("frame", "size"))
    monkeypatch.setitem(debugoffsets.SHAPES, (3, 97), shape)
    assert offsets.shape_differences((3, 97), offsets.parse_shape(DECLARED)) == [
        "SHAPES: thread has 3 words, the headers' thread_state 2",
        "SHAPES has 3 sections, the headers 2",
    ]
    assert offsets.shape_differences((3, 98), offsets.parse_shape(DECLARED)) == ["SHAPES has no row for 3.98"]


def test_what_the_runtime_publishes_comes_from_no_row() -> None:
    """Nothing is published before 3.13; each later release publishes more."""
    counts: List[int] = [len(offsets.from_rows((3, minor))) for minor in (12, 13, 14, 15)]
    assert counts == sorted(counts, reverse=True) and counts[0] == len(fields(Layout)) - 1
    assert "task_coro" in offsets.from_rows((3, 15)) and "fr_code" not in offsets.from_rows((3, 13))


def test_what_is_missing_is_said_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No headers, no such interpreter, no compiler."""
    assert offsets.main(["--headers", str(tmp_path)]) == 2
    assert offsets.main(["--python", "3.99"]) == 2
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(offsets.Refused, match="a C compiler is needed"):
        offsets.compiler()
    said = capsys.readouterr().err.splitlines()
    assert said[0].endswith("has no Python.h: install the headers of that Python (python3.X-dev)")
    assert said[1] == "offsets: there is no Python 3.99 here: give its path, or --headers"


def test_the_rows_agree_with_the_headers_of_this_interpreter(capsys: pytest.CaptureFixture[str]) -> None:
    """For real: needs a compiler and the headers of the interpreter that runs the tests."""
    required.compiler()
    try:
        headers = offsets.headers_of(sys.executable)
    except offsets.Refused as exc:
        required.lacking(str(exc))
    version = offsets.version_of(headers)
    assert version == sys.version_info[:3]
    assert offsets.main(["--check"]) == 0, capsys.readouterr().out
    assert offsets.main([]) == 0
    assert f"_V{version[0]}{version[1]:02} =" in capsys.readouterr().out
