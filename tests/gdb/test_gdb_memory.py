"""The contract of Memory over gdb's inferior: a core, and a process that gdb has stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from postmortem import places

from ..support import memorycontract
from ..support.interpreters import Program
from ..support.memorycontract import CHECKS, PROGRAM

pytestmark = pytest.mark.live

CONTRACT = Path(memorycontract.__file__).resolve()
INSIDE = """
import importlib.util, json, sys, traceback
import gdb
spec = importlib.util.spec_from_file_location("memory_contract", {contract!r})
contract = importlib.util.module_from_spec(spec)
spec.loader.exec_module(contract)
from postmortem_gdb.memory import GdbMemory
memory, facts = GdbMemory(gdb.selected_inferior()), contract.Facts({line!r})
results = {{}}
for check in (*contract.CHECKS, contract.image_checks):
    try:
        check(memory, facts)
        results[check.__name__] = None
    except BaseException:
        results[check.__name__] = traceback.format_exc()
open({output!r}, "w").write(json.dumps(results))
"""


@pytest.fixture(scope="module", params=["core", "process"])
def results(request, gdb, tmp_path_factory):
    """What each check came to: None, or a traceback."""
    folder = tmp_path_factory.mktemp("inside")
    output, core = folder / "results.json", folder / "core"
    with Program(sys.executable, PROGRAM, folder) as program:
        text = INSIDE.format(contract=str(CONTRACT), line=program.lines[-1], output=str(output))
        (folder / "inside.py").write_text(text)
        words = [str(gdb), "-nx", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off"]
        attach = [*words, "-p", str(program.pid)]
        run = ["-x", str(places.shipped("gdb") / "postmortem.py"), "-x", str(folder / "inside.py")]
        if request.param == "core":
            subprocess.run([*attach, "-ex", f"generate-core-file {core}"], check=True, capture_output=True, timeout=120)
            said = subprocess.run(
                [*words, sys.executable, str(core), *run], check=False, capture_output=True, text=True, timeout=120
            )
        else:
            said = subprocess.run([*attach, *run], check=False, capture_output=True, text=True, timeout=120)
    assert output.exists(), said.stderr
    return json.loads(output.read_text())


@pytest.mark.parametrize("name", [*(check.__name__ for check in CHECKS), "image_checks"])
def test_contract(results, name):
    """GdbMemory gives what the target itself says, and faults where there is nothing."""
    assert results[name] is None, results[name]
