"""`postmortem report BUNDLE --strip`: the same diagnosis in a bundle that may be shown to others.

It holds the evidence, the reports made of it and the manifest, secrets masked. Nothing of ``raw/`` is taken over: cores are
memory, and what /proc and py-spy told has command lines as they were; all that a report needs is in the evidence.
"""

from __future__ import annotations

import os
import shutil
import time
import zipfile
from pathlib import Path
from typing import Any, Dict, Optional

from . import __version__, evidence, report
from .bundle import Bundle, refuse_if_taken
from .cpython.secrets import masked
from .discretion.commands import masked_argv
from .errors import CaptureFailed, PostmortemError
from .foreign.ways import walk
from .foreign.writing import NEW
from .pipeline import load_bundle
from .supervision import private_folder

_NEXT = "choose another name with -o DIR or -o FILE.zip"


def strip(source: Path, output: Optional[Path] = None, *, with_locals: bool = False) -> Path:
    """Writes the bundle and tells where it is: ``output``, a zip archive if that ends in ``.zip``; without it beside
    ``source``, in its form. An existing one is never overwritten. Raises PostmortemError."""
    target = output if output is not None else _beside(source)
    try:
        refuse_if_taken(target)
        if target.suffix != ".zip":
            _write(source, target, with_locals)
        elif target.is_dir():
            raise PostmortemError(f"{target} is there already and is never overwritten", _NEXT)
        else:
            scratch = private_folder()
            try:
                inside = scratch / target.stem
                _write(source, inside, with_locals)
                _pack(inside, target)
            finally:
                shutil.rmtree(str(scratch), ignore_errors=True)
    except CaptureFailed as exc:  # that status is for `capture`
        raise PostmortemError(str(exc), _NEXT) from None
    except OSError as exc:
        raise PostmortemError(f"{target} cannot be written: {exc.strerror or exc}", _NEXT) from None
    return target


def _beside(source: Path) -> Path:
    absolute = source.absolute()  # of "." the name is empty
    archive = source.suffix == ".zip" and not source.is_dir()
    return source.with_name(f"{source.stem}-stripped.zip") if archive else Path(f"{absolute}-stripped")


def _write(source: Path, target: Path, with_locals: bool) -> None:
    found, diagnosis = load_bundle(source, with_locals=with_locals)
    with Bundle.open(source) as old:
        manifest = _manifest(old.manifest)
    with Bundle.create(target) as new:
        new.manifest = {**new.manifest, **manifest}
        new.manifest["stripped"] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "tool": {"name": "postmortem", "version": __version__},
            "left_out": ["raw"] if with_locals else ["raw", "locals"],
        }
        new.save_manifest()
        new.write("evidence.json", evidence.encode(found))
        for known in filter(lambda known: known.kept, report.FORMATS.values()):
            new.write(f"report{known.suffix}", known.render(found, diagnosis, False, 80).encode())


def _manifest(manifest: Dict[str, Any]) -> Dict[str, Any]:
    """Without secrets; versions before this one wrote the command as it was."""
    command = manifest.get("command")
    shown: Dict[str, Any] = _masked(manifest)
    if isinstance(command, list):
        shown["command"] = list(masked_argv([str(word) for word in command]))
    return shown


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, dict):
        return {str(key): _masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item) for item in value]
    return value


def _pack(folder: Path, target: Path) -> None:
    """An archive with the one folder in it; all of it or nothing is left."""
    above = walk(str(target.parent.absolute()), make=True)
    try:
        # O_EXCL: somebody may have been faster
        descriptor = os.open(target.name, NEW, 0o600, dir_fd=above)
        try:
            with open(descriptor, "w+b") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.write(str(folder), folder.name)
                for path in sorted(folder.iterdir()):
                    archive.write(str(path), f"{folder.name}/{path.name}")
        except BaseException:
            os.unlink(target.name, dir_fd=above)
            raise
    finally:
        os.close(above)
