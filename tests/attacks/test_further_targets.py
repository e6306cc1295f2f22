"""Targets of another user that change, block, lie and forge while root captures them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Iterator

import pytest

from . import further
from .further import OTHER, Place, captured, running

pytestmark = [pytest.mark.live, pytest.mark.skipif(os.geteuid() != 0, reason="needs root, and another user beside it")]

UP = "print('up', flush=True)\n"
SLEEP = UP + "import time\ntime.sleep(600)\n"


@pytest.fixture
def place() -> Iterator[Place]:
    with further.place() as made:
        yield made


# ---------------------------------------------------------------------- names

NAMES = {
    "magic link of the reader's own": "/proc/self/fd/0",
    "link of the reader's own": "/proc/self/root{hidden}",
    "root's working directory": "/proc/1/cwd{hidden}",
    "root's root": "/proc/1/root{hidden}",
    "memory of the machine": "/proc/kcore",
    "memory of the reader": "/proc/self/mem",
    "environment of the first process": "/proc/1/environ",
    "stream of the reader": "/dev/stdin",
    "descriptor of the reader": "/dev/fd/3",
    "device that never ends": "/dev/zero",
    "a way through a file": "{app}/../../ours/secret.py",
    "lone surrogates": "/tmp/\ud800\udfff.py",
    "undecodable": "/tmp/\udcff\udc80.py",
    "with a zero": "{hidden}\0.py",
    "very long": "/tmp/" + "x" * 70_000 + ".py",
    "orders to a terminal": "/tmp/\x1b]0;owned\x07\x1b[2J\r\x9b31m\u202e.py",
}


def test_names_of_sources_that_lead_into_the_reader_or_the_kernel(place: Place) -> None:
    """A thread for each: magic links of /proc, devices, the kernel's own files, ways through files, and names that no file
    can have. None of them is opened as root would, none is shown raw, and each thread has its stack."""
    names = [name.format(hidden=place.hidden, app=place.theirs / "app.py") for name in NAMES.values()]
    program = f"""
import threading, time
def stand(name):
    known = {{"time": time}}
    exec(compile("\\n\\n\\ndef stand():\\n    time.sleep(600)\\n", name.replace("\\0", ""), "exec"), known)
    code = known["stand"].__code__.replace(co_filename=name)
    known["stand"].__code__ = code
    return known["stand"]
for name in {names!r}:
    threading.Thread(target=stand(name), daemon=True).start()
time.sleep(0.1)
{SLEEP}"""
    with running(place, program) as pid:
        report = captured(pid, place.base / "bundle")
    (process,) = report["processes"]
    assert len([t for t in process["threads"] if any(f["function"] == "stand" for f in t["python"])]) == len(names)
