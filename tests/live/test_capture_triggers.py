"""What sets off a capture beside a deadline, and what becomes of the command: stalls, demands, series, --on-timeout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from ..support.capturing import DRIVER, HANG_S, Lines, capture, finished, start, state, wait_until

pytestmark = pytest.mark.live

#: Works on lines that it reads, and says what signals it got: who writes them says when it goes on.
WORKS = """
import os, signal, sys
def note(number, frame):
    os.write(1, signal.Signals(number).name.encode() + bytes([10]))  # print may be under way
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, note)
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "end":
        break
    print("worked", flush=True)
sys.exit(7)
"""
#: A diagnosis that takes until somebody writes to the FIFO that the environment names.
SLOW_DRIVER = DRIVER.replace(
    "    stream.write",
    "    import os; stream.write(f'begins {path}\\n'); open(os.environ['GATE']).read()\n    stream.write",
)


def trigger(bundle: Path) -> Dict[str, Any]:
    loaded: Dict[str, Any] = json.loads((bundle / "manifest.json").read_bytes())["trigger"]
    return loaded


# ---------------------------------------------------------------------- stall


def test_a_tree_that_waits_is_a_stall(tmp_path: Path) -> None:
    """Also when a thread looks at a clock twenty times a second, and while a shell starts short-lived sleeps."""
    polls = "import threading, time\ndef f():\n    while True: time.sleep(0.05)\nthreading.Thread(target=f).start()"
    script = 'python=$1; shift; "$python" -c "$1" & while :; do sleep 0.5; done'
    words = ["--stall", "2", "--observe", "0.2", "-o", str(tmp_path / "bundle"), "--"]
    done = finished(start(*words, "sh", "-c", script, "sh", sys.executable, polls), tmp_path / "bundle")
    assert done.status == 124
    assert done.manifest["trigger"] == {"kind": "stall", "seconds": 2.0, "signal": None}
    assert "has made no progress for 2 s: capturing" in done.stderr
    assert len(done.manifest["processes"]) >= 3


@pytest.mark.parametrize(
    "work",
    [
        "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.3; done",
        "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done",
        "for i in 1 2 3 4 5 6 7 8 9 10; do sh -c 'echo $i >/dev/null'; sleep 0.3; done",
    ],
    ids=["writes", "computes", "its children write"],
)
def test_what_makes_progress_is_left_alone(tmp_path: Path, work: str) -> None:
    """Its own status, nothing said, no bundle."""
    done = finished(start("--stall", "1", "-o", str(tmp_path / "bundle"), "--", "sh", "-c", work), tmp_path / "bundle")
    assert (done.status, done.stderr) == (0, "")
    assert not done.bundle.exists()


def test_a_deadline_holds_beside_a_stall(tmp_path: Path) -> None:
    """Whichever comes first."""
    done = capture(tmp_path, "--stall", "60", "--", "sleep", "600")
    assert (done.status, done.manifest["trigger"]["kind"]) == (124, "timeout")


# ---------------------------------------------------------------------- demands


class Demanded:
    """A command that runs under --on-signal USR1, and what it and postmortem say."""

    def __init__(self, folder: Path, *words: str, driver: str = DRIVER) -> None:
        self.folder = folder
        self.gate = folder / "gate"
        os.mkfifo(str(self.gate))
        options = ["--on-signal", "USR1", "-k", "0.5", "--observe", "0.2", "-o", str(folder / "bundles"), *words]
        with_gate = f"import os; os.environ['GATE'] = {str(self.gate)!r}\n" + driver
        self.process = start(
            *options, "--", sys.executable, "-c", WORKS, driver=with_gate, stdin=subprocess.PIPE, bufsize=1
        )
        self.hears = Lines(self.process.stderr).until
        self.answer = Lines(self.process.stdout).next
        assert self.answer() == "ready"

    def demand(self, number: int = signal.SIGUSR1) -> None:
        self.process.send_signal(number)

    def work(self) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write("more\n")
        return self.answer()

    def ends(self) -> int:
        """Tells the command to end; postmortem's status."""
        out, _err = self.process.communicate("end\n", timeout=HANG_S)
        assert out == ""
        return self.process.returncode

    @property
    def bundles(self) -> List[str]:
        return sorted(os.listdir(str(self.folder / "bundles")))


@pytest.fixture
def begun() -> Iterator[List[Demanded]]:
    """Whatever a test began is ended."""
    found: List[Demanded] = []
    yield found
    for each in found:
        each.process.kill()
        each.process.communicate()


def test_a_demand_is_answered_while_the_command_goes_on(tmp_path: Path, begun: List[Demanded]) -> None:
    """It is captured and diagnosed, does not see the signal, and its end is its own."""
    it = Demanded(tmp_path)
    begun.append(it)
    it.demand()
    it.hears("SIGUSR1: capturing")
    it.hears(f"diagnosed {tmp_path / 'bundles' / '1'} as text")
    assert it.work() == "worked"
    it.demand()
    it.hears(f"diagnosed {tmp_path / 'bundles' / '2'} as text")
    assert it.ends() == 7
    assert it.bundles == ["1", "2"]
    assert trigger(tmp_path / "bundles" / "2") == {"kind": "signal", "seconds": None, "signal": "SIGUSR1"}
    assert list((tmp_path / "bundles" / "1" / "raw" / "cores").iterdir())


def test_other_signals_are_passed_on_as_ever(tmp_path: Path, begun: List[Demanded]) -> None:
    """TERM too, which after a deadline would mean an end of the capture: here it means the command."""
    it = Demanded(tmp_path, "--observe", "2")
    begun.append(it)
    it.demand(signal.SIGUSR2)
    assert it.answer() == "SIGUSR2"
    it.demand()
    it.hears("watching")
    it.demand(signal.SIGTERM)
    assert it.answer() == "SIGTERM"
    it.hears("diagnosed")
    assert it.ends() == 7
    manifest = json.loads((tmp_path / "bundles" / "1" / "manifest.json").read_bytes())
    assert [step for step in manifest["steps"] if step["ok"] is False] == []


def test_a_demand_while_another_is_diagnosed(tmp_path: Path, begun: List[Demanded]) -> None:
    """It is captured at once, and diagnosed when its turn comes; the command's end waits for both."""
    it = Demanded(tmp_path, driver=SLOW_DRIVER)
    begun.append(it)
    it.demand()
    it.hears("begins")
    it.demand()
    it.hears("stopped 1 process")
    assert it.work() == "worked"
    it.gate.write_text("go")
    it.hears(f"diagnosed {tmp_path / 'bundles' / '1'}")
    it.hears(f"begins {tmp_path / 'bundles' / '2'}")
    assert it.process.stdin is not None
    it.process.stdin.write("end\n")
    it.gate.write_text("go")
    it.hears(f"diagnosed {tmp_path / 'bundles' / '2'}")
    assert it.process.wait(HANG_S) == 7


def test_a_command_that_ends_while_it_is_captured_on_demand(tmp_path: Path, begun: List[Demanded]) -> None:
    """Its status is kept, what was seen of it is diagnosed, and the capture does not go on to its end."""
    it = Demanded(tmp_path, "--observe", "50")
    begun.append(it)
    it.demand()
    it.hears("watching 1 process for 50 s")
    assert it.process.stdin is not None
    it.process.stdin.write("end\n")
    it.hears("diagnosed")
    assert it.process.wait(HANG_S) == 7


def test_an_end_that_is_asked_for_ends_the_diagnosis(tmp_path: Path, begun: List[Demanded]) -> None:
    """When the command has ended, TERM means postmortem alone; the capture is kept."""
    it = Demanded(tmp_path, driver=SLOW_DRIVER)
    begun.append(it)
    it.demand()
    it.hears("begins")
    assert it.process.stdin is not None
    it.process.stdin.write("end\n")
    command = json.loads((tmp_path / "bundles" / "1" / "manifest.json").read_bytes())["root_pid"]
    wait_until(lambda: not Path(f"/proc/{command}").exists(), "the command's end, noticed")
    it.demand(signal.SIGTERM)
    it.hears("interrupted; the capture is kept: postmortem analyze")
    assert it.process.wait(HANG_S) == 7


def test_a_number_that_is_taken_is_passed_over(tmp_path: Path, begun: List[Demanded]) -> None:
    """Nothing is overwritten, nothing is lost: the bundle takes the next one, and so do further demands."""
    it = Demanded(tmp_path)
    begun.append(it)
    (tmp_path / "bundles" / "1").mkdir(parents=True)
    (tmp_path / "bundles" / "1" / "precious").write_text("kept")
    it.demand()
    it.hears(f"diagnosed {tmp_path / 'bundles' / '2'} as text")
    assert it.work() == "worked"
    it.demand()
    it.hears(f"diagnosed {tmp_path / 'bundles' / '3'} as text")
    assert it.ends() == 7
    assert os.listdir(str(tmp_path / "bundles" / "1")) == ["precious"]


def test_a_deadline_after_a_demand(tmp_path: Path, begun: List[Demanded]) -> None:
    """It takes the next number and ends the command; a demand that comes still later harms nobody."""
    it = Demanded(tmp_path, "-t", "2", driver=SLOW_DRIVER)
    begun.append(it)
    it.demand()
    it.hears("begins")
    it.hears("has not ended in time")
    it.gate.write_text("go")
    it.hears(f"begins {tmp_path / 'bundles' / '2'}")
    it.demand()
    it.gate.write_text("go")
    it.hears(f"diagnosed {tmp_path / 'bundles' / '2'}")
    assert it.process.wait(HANG_S) == 124
    assert trigger(tmp_path / "bundles" / "2")["kind"] == "timeout"


def test_the_budget_counts_from_the_deadline(tmp_path: Path) -> None:
    """What the capture took is gone from it; a diagnosis beside the command has all of its own."""
    budget = DRIVER.replace("format, reports, **_", "until, **_").replace(
        "    stream.write",
        "    import time; stream.write(f'left {until - time.monotonic()}\\n')\n    return\n    stream.write",
    )
    done = capture(tmp_path, "--budget", "1000", "--", "sleep", "600", driver=budget, observe=1.5)
    left = float(done.stderr.split("left ")[1].split()[0])
    assert 900 < left < 998.6
    with subprocess.Popen(["sleep", "600"]) as target:
        words = ["--pid", str(target.pid), "--repeat", "2", "--every", "0.1", "--observe", "0.1", "--budget", "1000"]
        series = finished(start(*words, "-o", str(tmp_path / "series"), driver=budget), tmp_path / "series")
        target.kill()
    assert [900 < float(text.split()[0]) <= 1000 for text in series.stderr.split("left ")[1:]] == [True, True]


def test_the_budget_bounds_the_observation(tmp_path: Path) -> None:
    """Watching for longer than half of it would leave nothing for the verdict; that is said, and kept."""
    done = capture(tmp_path, "--budget", "0.6", "--", "sleep", "600", observe=HANG_S * 2)
    assert done.status == 124
    assert f"watching for 0.3 s, half of --budget, instead of --observe {HANG_S * 2:g}\n" in done.stderr
    assert "watching 1 process for 0.3 s" in done.stderr
    (step,) = done.steps("observe")
    assert step["left_out"] == f"it was watched for 0.3 s, not {HANG_S * 2:g} s"


# ---------------------------------------------------------------------- --on-timeout leave


def test_a_command_that_is_left_outlives_postmortem(tmp_path: Path) -> None:
    """It is said where it goes on, the status is 124 without waiting for it, and nothing has signalled it."""
    fifo = tmp_path / "fifo"
    os.mkfifo(str(fifo))
    script = f"sleep 600 & read line < {fifo}; echo $line > {tmp_path}/after; kill $!"
    said = tmp_path / "said"  # no pipe: whoever reads one waits for the command, too, to close it
    with said.open("w") as stream:
        done = capture(
            tmp_path,
            "--on-timeout",
            "leave",
            "--",
            "sh",
            "-c",
            script,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            start_new_session=True,
        )
    assert done.status == 124
    assert f"sh keeps running as process {done.root}" in said.read_text()
    assert "diagnosed" in said.read_text()
    assert state(done.root) == "S"
    assert os.getpgid(done.root) == done.root  # the group that it had
    assert not done.steps("end")
    fifo.write_text("go on\n")
    wait_until(lambda: state(done.root) is None, "the command's own end")
    assert (tmp_path / "after").read_text() == "go on\n"


# ---------------------------------------------------------------------- signals


@pytest.mark.parametrize("numbers", [("TERM",), ("INT", "TERM", "QUIT")])
@pytest.mark.parametrize("left", [False, True], ids=["--pid", "leave"])
def test_a_signal_that_came_during_the_copy_interrupts_the_diagnosis(
    tmp_path: Path, left: bool, numbers: Tuple[str, ...]
) -> None:
    """It was kept until then; however many came, that is one sentence, and the status of a capture that was made."""
    sends = "".join(f"os.kill(os.getpid(), signal.SIG{name}); " for name in numbers)
    struck = (
        "import os, signal\nfrom postmortem.capture.run import conclusion as aftermath\nfilled = aftermath.fill\n"
        f"def fill(*words): filled(*words); {sends}\naftermath.fill = fill\n"
    )
    options = ["--observe", "0.1", "-o", str(tmp_path / "bundle")]
    with subprocess.Popen(["sleep", "600"]) as target, (tmp_path / "said").open("w") as said:
        words = ["-t", "0.2", "--on-timeout", "leave", *options, "sleep", "600"]
        words = words if left else ["--pid", str(target.pid), *options]
        process = start(*words, driver=struck + DRIVER, stdout=subprocess.DEVNULL, stderr=said)
        done = finished(process, tmp_path / "bundle")
        target.kill()
    if left:
        os.kill(done.root, signal.SIGKILL)
    told = (tmp_path / "said").read_text()
    assert done.status == (124 if left else 0), told
    assert told.endswith(f"postmortem: interrupted; the capture is kept: postmortem analyze {done.bundle}\n")
    assert "Traceback" not in told
    assert "diagnosed" not in told


def test_a_diagnosis_beside_the_command_that_is_interrupted_before_its_turn(
    tmp_path: Path, begun: List[Demanded]
) -> None:
    """It says where the capture is, too."""
    struck = (
        "import os, signal\nfrom postmortem.capture.run import background\n"
        "def struck(): os.kill(os.getpid(), signal.SIGTERM)\nbackground.be_quiet = struck\n"
    )
    it = Demanded(tmp_path, driver=struck + DRIVER)
    begun.append(it)
    it.demand()
    assert it.hears("interrupted").endswith(f"kept: postmortem analyze {tmp_path / 'bundles' / '1'}")
    assert it.ends() == 7
