"""openat2(2), where the kernel has it and where it does not."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

import pytest

from postmortem.foreign import openat2 as module
from postmortem.foreign.openat2 import BENEATH, NO_SYMLINKS, NotThere, openat2


class Refusing:
    """A C library whose system calls all fail."""

    def syscall(self, *_: object) -> int:
        return -1


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EPERM, errno.E2BIG])
def test_a_kernel_or_a_filter_without_it_is_told_apart(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Callers go another way then; it is no answer about the file."""
    monkeypatch.setattr(module, "_LIBC", Refusing())
    monkeypatch.setattr(ctypes, "get_errno", lambda: code)
    with pytest.raises(NotThere):
        openat2(-1, "x", os.O_PATH, BENEATH)


def test_its_errors_are_the_systems(tmp_path: Path) -> None:
    """A link, and a name that would lead out: the error's number and the name; what is opened is not inherited."""
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "file").write_text("x")
    folder = os.open(tmp_path, os.O_PATH)
    try:
        for name, code in (("link", errno.ELOOP), ("../x", errno.EXDEV), ("none", errno.ENOENT)):
            with pytest.raises(OSError) as caught:
                openat2(folder, name, os.O_PATH, BENEATH | NO_SYMLINKS)
            assert (caught.value.errno, caught.value.filename) == (code, name)
        found = openat2(folder, "file", os.O_RDONLY, BENEATH)
        assert not os.get_inheritable(found)
        os.close(found)
    finally:
        os.close(folder)
