"""What all ways of setting up share: running a program, saying what goes on, and giving up with one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, Optional, Sequence

#: Seconds; a build takes about a minute on two cores, and hosts without a network must not hang for ever.
DEADLINE_S = 900
_SHOWN = 300  # characters of what a failed program said


class Unavailable(Exception):
    """This interpreter cannot be had here; the message is one sentence that names what is missing."""


def say(id: str, what: str) -> None:
    """One line of progress."""
    print(f"interpreters: {id}: {what}", file=sys.stderr, flush=True)


def run(
    command: Sequence[str], cwd: Optional[Path] = None, env: Optional[Dict[str, str]] = None, log: Optional[Path] = None
) -> str:
    """Its stdout. Raises Unavailable with its last complaint, or with the program's name when there is none such.

    With ``log`` everything it says goes there, and the complaint names that file.
    """
    name = Path(command[0]).name
    environment = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}
    try:
        done = subprocess.run(
            list(command),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if log else subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=DEADLINE_S,
            check=False,
        )
    except FileNotFoundError:
        raise Unavailable(f"{name} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{name} did not end within {DEADLINE_S} s") from None
    if log:
        log.write_text(done.stdout)
    if done.returncode != 0:
        said = (done.stdout if log else done.stderr).strip().splitlines() or [f"status {done.returncode}"]
        where = f" (all of it in {log})" if log else ""
        raise Unavailable(f"{name} failed: {_complaint(said)[:_SHOWN]}{where}")
    return done.stdout


def _complaint(said: Sequence[str]) -> str:
    """The first line that is marked as an error: what follows is mostly its consequence."""
    for line in said:
        if line.startswith("E: ") or "error:" in line.lower():
            return line.strip()
    return said[-1].strip()
