"""The contract of Memory over real targets: a running process, and cores of it by the kernel, by us, by gcore."""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterator, Tuple

import pytest

from postmortem.memory import ElfCore, Image, ProcMem

from ..support.interpreters import Program
from ..support.memorycontract import CHECKS, PROGRAM, Facts, image_checks
from ..support.takingcores import gcore, kernel_core, sparse_core

pytestmark = pytest.mark.live

Target = Tuple[Image, Facts]


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
