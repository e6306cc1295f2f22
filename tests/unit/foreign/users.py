"""Other users: a function run in a forked child with their ids, and its answer; directories that they can reach."""

from __future__ import annotations

import gc
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

#: Users that own nothing.
NOBODY, SOMEBODY = 65534, 12345

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")


def as_user(uid: int, action: Callable[[], Any]) -> Any:
    """Return what ``action`` returns (JSON), or ``[error's class, errno]``, run by a child that is that user altogether."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            try:
                answer = action()
            except OSError as exc:
                answer = [type(exc).__name__, exc.errno]
            os.write(writing, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(pid, 0)
    return json.loads(data)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary directory that every user can enter; pytest's own is its owner's alone."""
    folder = Path(tempfile.mkdtemp(prefix="foreign-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(str(folder))


def descriptors() -> int:
    """Return how many descriptors are open, but for what earlier tests have left to the garbage collector.

    What survives is left out of later collections, which take a second each at the end of a session.
    """
    gc.collect()
    gc.freeze()
    return len(os.listdir("/proc/self/fd"))
