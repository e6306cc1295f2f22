"""Processes without an interpreter that is read: one sentence that says why, and what would help."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

import pytest

from postmortem.cpython.runtime.discovery import NoInterpreter, find_runtime
from postmortem.memory import Elf, Fault, Image, MappedFile


class Mapped(Image):
    """A process of which nothing but the names of its files is known."""

    def __init__(self, *paths: str) -> None:
        self._paths = paths

    @property
    def files(self) -> List[MappedFile]:
        return [MappedFile(at << 20, (at << 20) + 4096, 0, path) for at, path in enumerate(self._paths, 1)]

    @property
    def writable(self) -> List[Tuple[int, int]]:
        return []

    def read(self, address: int, size: int) -> bytes:
        raise Fault(address, size)

    def elf(self, path: str) -> Optional[Elf]:
        return None


SENTENCES: Dict[Tuple[str, ...], Tuple[str, str]] = {
    ("/usr/bin/pypy3.9", "/usr/lib/libpypy3.9-c.so"): ("this is PyPy, but only CPython can be read", "faulthandler"),
    ("/usr/bin/python2.7",): ("this is CPython 2.7, but only 3.8 to", "py-spy dump --pid"),
    ("/usr/lib/libpython3.7m.so.1.0",): ("this is CPython 3.7, but only 3.8 to", "py-spy dump --pid"),
    ("/usr/bin/python3.99",): ("this is CPython 3.99, but only 3.8 to", "newer release"),
    ("/opt/program", "/opt/lib/libpython3.12.so.1.0"): ("the file is missing here", "--sysroot"),
    ("/opt/program", "/opt/lib/python3.12/lib-dynload/math.so"): ("the file is missing here", "--sysroot"),
}


@pytest.mark.parametrize("paths", SENTENCES, ids=lambda paths: paths[-1])
def test_what_is_mapped_says_why(paths: Tuple[str, ...]) -> None:
    """The reason names the file, what it is and what is read; the remedy is one for that reason."""
    reason, remedy = SENTENCES[paths]
    with pytest.raises(NoInterpreter) as caught:
        find_runtime(Mapped(*paths))
    assert reason in str(caught.value)
    assert caught.value.python_file in paths
    assert remedy in (caught.value.remedy or "")


def test_a_program_of_another_kind_needs_no_gap() -> None:
    """Nothing suggests Python: there is nothing that somebody could miss."""
    with pytest.raises(NoInterpreter) as caught:
        find_runtime(Mapped("/usr/bin/sleep", "/usr/lib/libc.so.6"))
    assert caught.value.python_file is None
    assert caught.value.remedy is None
