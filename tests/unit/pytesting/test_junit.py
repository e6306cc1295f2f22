"""The JUnit file that the watchdog writes, or adds to."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, List
from xml.etree import ElementTree

import pytest

from postmortem.pytesting import junit
from postmortem.pytesting.answer import Answer


def hang(kind: str = "call", nodeid: str = "tests/test_a.py::TestB::test_c[1]", text: str = "all of it") -> Answer:
    return Answer(nodeid, kind, 5.0, "self-deadlock", "/bundles/c", "took longer than 5 s", text)


class Reporter:
    def __init__(self, name: str, *inside: str) -> None:
        self._element = ElementTree.Element("testcase", {"classname": "t", "name": name})
        for tag in inside:
            ElementTree.SubElement(self._element, tag)

    def to_xml(self) -> Any:
        return self._element


class Writer:
    """As much of pytest's LogXML as the journal knows."""

    suite_name = "shop"

    def __init__(self) -> None:
        self.node_reporters_ordered: List[Reporter] = []


def test_the_journal_outlives_its_writer(tmp_path: Path) -> None:
    """Each finished test is in it once; the file that is made of it has them, what hung, and what they add up to."""
    writer = Writer()
    with tempfile.TemporaryFile() as stream:
        journal = junit.Journal(stream.fileno(), writer)
        writer.node_reporters_ordered += [Reporter("one"), Reporter("two\nlines")]
        journal.pytest_runtest_logfinish()
        writer.node_reporters_ordered.append(Reporter("three", "skipped"))
        journal.pytest_runtest_logfinish()
        journal.pytest_runtest_logfinish()
        said = junit.rescue(stream.fileno(), tmp_path / "made" / "r.xml", hang())
    assert "has it and 3 that finished before it" in said
    (suite,) = ElementTree.parse(tmp_path / "made" / "r.xml").getroot()
    assert [case.get("name") for case in suite] == ["one", "two\nlines", "three", "test_c[1]"]
    assert [suite.get(key) for key in ("name", "tests", "failures", "errors", "skipped")] == [
        "shop",
        "4",
        "1",
        "0",
        "1",
    ]


def test_a_case_is_named_as_pytest_names_it() -> None:
    """Classes belong to the class name; what is no test's body is an error; what XML cannot say is spelt out."""
    case = junit.case(hang(text="bell \x07 rings"))
    assert (case.get("classname"), case.get("name")) == ("tests.test_a.TestB", "test_c[1]")
    assert case.find("failure").text == "bell #x07 rings"
    assert junit.case(hang("teardown")).find("error") is not None
    assert junit.case(hang("exit", "the interpreter's exit")).get("name") == "exit of the process"
    assert junit.case(hang("collection", "tests/test_a.py")).get("name") == "tests/test_a.py"


def test_one_more_case_in_a_file_that_is_there(tmp_path: Path) -> None:
    """Its numbers follow; a file that is none of pytest's stays as it is."""
    path = tmp_path / "r.xml"
    path.write_text('<testsuites><testsuite tests="1" errors="0"><testcase name="one"/></testsuite></testsuites>')
    junit.add(path, hang("exit", "the interpreter's exit"))
    (suite,) = ElementTree.parse(path).getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("2", "1")
    path.write_text("not XML")
    junit.add(path, hang("exit"))
    assert path.read_text() == "not XML"
    junit.add(tmp_path / "nowhere.xml", hang("exit"))


def test_a_disk_that_refuses_is_said(tmp_path: Path) -> None:
    """The diagnosis is on the terminal all the same."""
    (tmp_path / "file").write_text("")
    with tempfile.TemporaryFile() as stream:
        assert "cannot be written" in junit.rescue(stream.fileno(), tmp_path / "file" / "r.xml", hang())


def test_an_answer_survives_its_way() -> None:
    """As bytes and back; what is no answer is refused."""
    assert Answer.decode(hang().encode()) == hang()
    with pytest.raises(ValueError, match="unexpected keyword"):
        Answer.decode(b'{"nodeid": "a", "weight": 3}')
