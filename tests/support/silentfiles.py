"""A file system that never answers."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path
from typing import Iterator

import pytest


@contextlib.contextmanager
def silent_file_system(point: Path) -> Iterator[None]:
    """A file system in user space whose server reads its requests and answers none (fuse(4))."""
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    try:
        if libc.mount(b"silent", str(point).encode(), b"fuse", 0, options) != 0:
            pytest.fail(f"no file system in user space: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            libc.umount2(str(point).encode(), 2)  # MNT_DETACH
    finally:
        os.close(device)  # which ends the requests of those that still wait


needs_fuse = pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse")
