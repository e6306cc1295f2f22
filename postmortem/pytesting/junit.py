"""The JUnit file when pytest cannot write it, or has written it too early: finished tests are kept, the hang is added.

``Journal`` is pytest's side: each test's element, as made by pytest's own writer, goes into a file that outlives the
process. The watchdog assembles them. Format: pytest's ``_pytest/junitxml.py``, ``pytest_sessionfinish`` (7.0 to 9).
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple
from xml.etree import ElementTree

from .answer import Answer

_END = b"\0"  # never occurs in XML
_MOST = 1 << 30
#: Characters that XML 1.0 cannot represent.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Journal:
    """The plugin that keeps each finished test's element."""

    def __init__(self, descriptor: int, writer: Any) -> None:
        self._descriptor = descriptor
        self._writer = writer  # pytest's LogXML
        self._kept = 0
        self._write(json.dumps({"name": writer.suite_name, "began": time.time(), "since": time.monotonic()}).encode())

    def pytest_runtest_logfinish(self) -> None:
        """Append the elements of newly finished tests."""
        reporters = self._writer.node_reporters_ordered
        for reporter in reporters[self._kept :]:
            self._write(ElementTree.tostring(reporter.to_xml(), encoding="utf-8"))
        self._kept = len(reporters)

    def _write(self, data: bytes) -> None:
        os.write(self._descriptor, data + _END)


def find_writer(config: Any) -> Any:
    """Return pytest's own writer of JUnit files; None if there is none."""
    for _name, plugin in config.pluginmanager.list_name_plugin():
        if hasattr(plugin, "node_reporters_ordered") and hasattr(plugin, "suite_name"):
            return plugin
    return None


# ---------------------------------------------------------------------- the watchdog's side


def rescue(journal: int, path: Path, found: Answer) -> str:
    """Write the file from the journal and the hang; return a sentence on the result."""
    header, cases = _read(journal)
    cases.append(case(found))
    began, since = header.get("began", 0.0), header.get("since", time.monotonic())
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": header.get("name", "pytest"),
            "time": f"{time.monotonic() - since:.3f}",
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(began)),
            "hostname": os.uname().nodename,
        },
    )
    suite.extend(cases)
    whole = ElementTree.Element("testsuites")
    whole.append(suite)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _save(path, whole, suite)
    except OSError as exc:
        return f"{path} cannot be written: {exc.strerror}"
    return f"{path} has it and {len(cases) - 1} that finished before it"


def add(path: Path, found: Answer) -> None:
    """Add a case to an existing file; a file that is missing or unreadable is left alone."""
    try:
        whole = ElementTree.fromstring(path.read_bytes())  # noqa: S314 - written by pytest
    except (OSError, ElementTree.ParseError):
        return
    suite = whole if whole.tag == "testsuite" else whole.find("testsuite")
    if suite is not None:
        suite.append(case(found))
        _save(path, whole, suite)


def case(found: Answer) -> Any:
    """Return the element of a hang: the call of a test fails, everything else is an error, as in pytest."""
    file, *rest = found.nodeid.split("::")
    if found.kind == "exit":
        names = {"classname": "postmortem", "name": f"exit of {found.worker or 'the process'}"}
    elif rest:
        names = {"classname": ".".join([file[:-3].replace("/", ".") if file.endswith(".py") else file, *rest[:-1]])}
        names["name"] = rest[-1]
    else:
        names = {"classname": "", "name": file}
    element = ElementTree.Element("testcase", {key: _plain(text) for key, text in names.items()})
    element.set("time", f"{found.limit:.3f}")
    kept = ElementTree.SubElement(element, "properties")
    for name, value in found.properties:
        ElementTree.SubElement(kept, "property", {"name": name, "value": _plain(value)})
    trouble = ElementTree.SubElement(element, "failure" if found.kind == "call" else "error")
    trouble.set("message", _plain(found.message))
    trouble.text = _plain(found.text)
    return element


def _read(journal: int) -> Tuple[Dict[str, Any], List[Any]]:
    """Return the journal's header and its elements."""
    parts = os.pread(journal, min(os.fstat(journal).st_size, _MOST), 0).split(_END)[:-1]
    header: Dict[str, Any] = json.loads(parts[0]) if parts else {}
    return header, [ElementTree.fromstring(part) for part in parts[1:]]  # noqa: S314 - written by pytest


def _save(path: Path, whole: Any, suite: Any) -> None:
    """Write the file atomically, with its counts updated."""
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for name, tag in (("errors", "error"), ("failures", "failure"), ("skipped", "skipped")):
        suite.set(name, str(sum(one.find(tag) is not None for one in cases)))
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(b'<?xml version="1.0" encoding="utf-8"?>' + ElementTree.tostring(whole, encoding="utf-8"))
    temporary.replace(path)


def _plain(text: str) -> str:
    """Escape the characters that XML cannot represent."""
    return _UNWRITABLE.sub(lambda found: f"#x{ord(found.group()):02X}", text)
