"""The TAB key in real shells, on a terminal: what is offered is what can be typed."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List

import pytest

from ..support import required

pytestmark = pytest.mark.live

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "ready> "
#: How each shell is started without anybody's own settings, and made to complete. ``{0}``: the file with the script.
SHELLS: Dict[str, List[str]] = {
    "bash": ["bash --norc --noprofile -i", "source {0}; bind 'set bell-style none'; PS1='rea''dy> '"],
    "zsh": ["zsh -f -i", "autoload -U compinit; compinit -u -D; source {0}; unsetopt beep; PS1='rea''dy> '"],
}
DEADLINE_S = 30.0


def command(folder: Path) -> Path:
    """``postmortem`` as this checkout has it, in a folder of programs."""
    path = folder / "bin" / "postmortem"
    path.parent.mkdir()
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from postmortem.__main__ import main\nsys.exit(main())\n"
    )
    path.chmod(0o755)
    return path


def environment(folder: Path) -> Dict[str, str]:
    return {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(folder), "TERM": "xterm", "LC_ALL": "C.UTF-8"}


class Terminal:
    """A shell on a terminal of its own, with a command ``postmortem`` on its PATH."""

    def __init__(self, shell: str, folder: Path) -> None:
        script = subprocess.check_output([str(command(folder)), "completion", shell])
        start, settings = SHELLS[shell]
        self.seen, self.given_up = "", 0
        (folder / "script").write_bytes(script)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(start.split()[0], start.split(), environment(folder))
        self.type(settings.format(folder / "script") + "\n")
        self.wait_for(PROMPT)

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for(self, text: str) -> None:
        """Until the terminal shows it, escapes left out."""
        until = time.monotonic() + DEADLINE_S
        while text not in self.seen:
            assert time.monotonic() < until, f"no {text!r} in {self.seen!r}"
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += re.sub(
                    r"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b[()][A-Z0-9]|[\x07\r]", "", os.read(self.fd, 65536).decode()
                )

    def completes(self, typed: str, shown: str) -> None:
        """``typed`` and TAB show ``shown``; the line is given up then."""
        self.seen = ""
        self.type(typed + "\t")
        self.wait_for(shown)
        self.given_up += 1
        self.type(f"\x15echo the line was gi''ven up {self.given_up}\n")
        self.wait_for(f"given up {self.given_up}")

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


#: What is typed → what is shown then.
CASES = {
    "postmortem ana": "postmortem analyze",
    "postmortem capture --on-t": "--on-timeout",
    "postmortem capture --on-timeout le": "--on-timeout leave",
    "postmortem capture --core=sp": "--core=sparse",
    "postmortem report --str": "--strip",
    "postmortem patterns gil-th": "gil-thrash",
    "postmortem analyze co": "core.4711",
    "postmortem capture -t 5 -- postmor": "-- postmortem",
    "postmortem capture -t 5 -- cat inp": "cat input.txt",
}


def needed(shell: str, folder: Path) -> None:
    required.program(shell)
    for name in ("core.4711", "input.txt"):
        (folder / name).write_text("")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(shell: str, tmp_path: Path) -> None:
    """Commands, options of capture and of the others, their values, files; after `--` commands, and files for those."""
    needed(shell, tmp_path)
    terminal = Terminal(shell, tmp_path)
    try:
        for typed, shown in CASES.items():
            terminal.completes(typed, shown)
    finally:
        terminal.close()


def test_fish_completes(tmp_path: Path) -> None:
    """As fish itself is asked for it, without a terminal."""
    needed("fish", tmp_path)
    command(tmp_path)
    lines = "".join(f"echo (complete -C '{typed}'); " for typed in CASES)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"postmortem completion fish | source; {lines}"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    offered = done.stdout.splitlines()
    for line, shown in zip(offered, CASES.values()):
        assert line.startswith(shown.split()[-1]), (offered, done.stderr)
    assert len(offered) == len(CASES)
