"""Interpreters that Debian sid packages, unpacked beside the machine's own and run on sid's libc."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Sequence

from . import elf
from .apt import PrivateApt
from .steps import Unavailable, run, say
from .wanted import Wanted

# Documentation, fonts, time zones, detached debug symbols, static libraries: nothing that runs.
_LEFT_OUT = ("./usr/share", "./usr/lib/debug", "./etc", "./var", "*.a")

# The command line of CPython in a libpython of another distribution, whose headers are not needed for that.
_MAIN = "int Py_BytesMain(int, char **);\nint main(int argc, char **argv) { return Py_BytesMain(argc, argv); }\n"


def set_up(wanted: Wanted, apt: PrivateApt, folder: Path) -> Path:
    """The program, at home in ``folder`` with all it needs. Raises Unavailable."""
    files = apt.download(wanted.packages)
    say(wanted.id, f"unpacking {len(files)} packages")
    unpack(files, folder)
    libraries = _libraries(folder)
    program = folder / "usr" / "bin" / wanted.program
    if wanted.library:
        _link(libraries / wanted.library, program, _loader(folder, libraries))
        return program
    try:
        elf.rehome(program, str(_loader(folder, libraries)), str(libraries))
    except (OSError, elf.NotPatchable) as error:
        raise Unavailable(f"{program.name} cannot be given another loader: {error}") from error
    return program


def unpack(files: Sequence[Path], folder: Path) -> None:
    """What of some .deb files runs."""
    leave_out = [f"--exclude={pattern}" for pattern in _LEFT_OUT]
    with tempfile.NamedTemporaryFile(suffix=".tar") as tar:
        for file in files:
            # Not dpkg -x, which cannot leave anything out.
            run(["sh", "-c", 'dpkg --fsys-tarfile "$1" > "$2"', "sh", str(file), tar.name])
            run(["tar", "-x", "-f", tar.name, "-C", str(folder), "--no-same-owner", *leave_out])


def _libraries(folder: Path) -> Path:
    found = list((folder / "usr" / "lib").glob("*-linux-gnu*"))
    if len(found) != 1:
        raise Unavailable(f"the packages have {len(found)} folders of libraries, not one")
    return found[0]


def _loader(folder: Path, libraries: Path) -> Path:
    """sid's own dynamic loader, found as libc's neighbour: its name differs by architecture."""
    for name in ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld64.so.2", "ld64.so.1"):
        if (libraries / name).exists():
            return libraries / name
    raise Unavailable(f"no dynamic loader is known for the architecture of {libraries.relative_to(folder)}")


def _link(library: Path, program: Path, loader: Path) -> None:
    """A program that has CPython in a shared library, as embedders do."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Unavailable("no C compiler is installed: it belongs to Debian's package build-essential")
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "main.c"
        source.write_text(_MAIN)
        # The library needs a newer libc than the linker has at hand; it will get it when it runs. RPATH, not RUNPATH:
        # see elf.py.
        options = [
            "--allow-shlib-undefined",
            "--disable-new-dtags",
            f"--dynamic-linker={loader}",
            f"-rpath={library.parent}",
        ]
        run([compiler, "-o", str(program), str(source), str(library), *(f"-Wl,{option}" for option in options)])
