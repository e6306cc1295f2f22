"""Virtual environments of the applications, kept outside the tree so that every checkout shares them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.interpreters.steps import Unavailable, run
from tests.interpreters.wanted import BY_ID, find, missing

from .specs import Application


def home() -> Path:
    """Where they live; POSTMORTEM_APPLICATIONS chooses another folder."""
    chosen = os.environ.get("POSTMORTEM_APPLICATIONS")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "postmortem" / "applications"


def recipe(application: Application) -> str:
    """Return the mark of a finished environment: one of another recipe is made anew."""
    wanted = json.dumps([application.python, application.requirements])
    return hashlib.sha256(wanted.encode()).hexdigest()[:16]


def environment(application: Application) -> Path:
    """Return the folder of its environment, made if it is not there. Raise Unavailable."""
    folder = home() / application.id
    mark = folder / ".recipe"
    if mark.is_file() and mark.read_text() == recipe(application):
        return folder
    wanted = BY_ID[application.python]
    interpreter = find(wanted)
    if interpreter is None:
        raise Unavailable(missing(wanted))
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    run([str(interpreter), "-m", "venv", str(folder)])
    if application.requirements:
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
        run([*pip, *application.requirements])
    mark.write_text(recipe(application))
    return folder


def version(application: Application, folder: Path) -> str:
    """Return the version tried: the distribution's, or the interpreter's."""
    code = "import platform; print(platform.python_version())"
    if application.distribution:
        code = f"from importlib.metadata import version; print(version({application.distribution!r}))"
    return run([str(folder / "bin" / "python"), "-c", code]).strip()


def interpreter_version(folder: Path) -> str:
    """Return the full version of its Python."""
    asked = [str(folder / "bin" / "python"), "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
