"""The contract of Memory over real targets: a running process, and cores of it by the kernel, by us, by gcore."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, Tuple

import pytest

from postmortem.memory import ElfCore, Image, ProcMem
from postmortem.native import find_gdb

from ..support.capturing import finished, start
from ..support.interpreters import Program, kernel_core
from ..support.memorycontract import CHECKS, PROGRAM, Facts, image_checks

pytestmark = pytest.mark.live

Target = Tuple[Image, Facts]


def sparse_core(program: Program, folder: Path) -> Path:
    done = finished(start("--observe", "0", "-o", str(folder / "b"), "--pid", str(program.pid)), folder / "b")
    assert done.status == 0, done.stderr
    return done.core(program.pid)


def gcore(program: Program, folder: Path) -> Path:
    gdb = find_gdb()
    if gdb is None:
        pytest.skip("gdb is not installed: apt install gdb")
    words = [str(gdb), "-nx", "-batch", "-p", str(program.pid), "-ex", f"generate-core-file {folder / 'gcore'}"]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    return folder / "gcore"


@pytest.fixture(
    scope="module", params=["process", kernel_core, sparse_core, gcore], ids=["process", "kernel", "sparse", "gcore"]
)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("target")
    with Program(sys.executable, PROGRAM, folder, cwd=folder) as program:
        facts = Facts(program.lines[-1])
        if request.param == "process":
            with ProcMem(program.pid) as memory:
                yield memory, facts
        else:
            yield ElfCore(str(request.param(program, folder))), facts


@pytest.mark.parametrize("check", [*CHECKS, image_checks], ids=lambda check: check.__name__)
def test_contract(check: Callable[[Image, Any], None], target: Target) -> None:
    """Bytes equal what the process itself says, whoever wrote the core, and nothing else is made up."""
    check(*target)
