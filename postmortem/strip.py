"""`postmortem report BUNDLE --strip`: the same diagnosis in a bundle that can be shown to others.

It contains the evidence, the reports made of it and the manifest, with secrets masked, and nothing of ``raw/``: cores
are memory, and the files of /proc and py-spy contain unmasked command lines. All that a report needs is in the
evidence.
"""

from __future__ import annotations

import os
import stat
import time
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any, Dict, Optional

from . import __version__, evidence, report
from .bundle import MANIFEST, NEW_MANIFEST, Bundle, as_json, refuse_if_taken
from .errors import CaptureFailed, PostmortemError
from .foreign.writing import write_new_file
from .pipeline import load_bundle
from .redaction.commands import masked_argv
from .redaction.secrets import masked

_NEXT = "choose another name with -o DIR or -o FILE.zip"


def strip(source: Path, output: Optional[Path] = None, *, with_locals: bool = False) -> Path:
    """Write the stripped bundle; return its path.

    ``output``: a zip archive if it ends in ``.zip``; None: beside ``source``, in its form. An existing one is never
    overwritten. Raises PostmortemError.
    """
    target = output if output is not None else _beside(source)
    try:
        if target.suffix == ".zip":
            if os.path.lexists(target):
                raise PostmortemError(f"{target} already exists and is never overwritten", _NEXT)
            _pack(_content(source, with_locals), target)
        else:
            refuse_if_taken(target)
            _write(_content(source, with_locals), target)
    except CaptureFailed as exc:  # its exit status is for `capture`
        raise PostmortemError(str(exc), _NEXT) from None
    except OSError as exc:
        raise PostmortemError(f"{target} cannot be written: {exc.strerror or exc}", _NEXT) from None
    return target


def _beside(source: Path) -> Path:
    absolute = source.absolute()  # the name of "." is empty
    archive = source.suffix == ".zip" and not source.is_dir()
    return source.with_name(f"{source.stem}-stripped.zip") if archive else Path(f"{absolute}-stripped")


def _content(source: Path, with_locals: bool) -> Dict[str, bytes]:
    """Return name → content of each file, the manifest last."""
    found, diagnosis = load_bundle(source, with_locals=with_locals)
    with Bundle.open(source) as old:
        manifest = {**NEW_MANIFEST, **_manifest(old.manifest)}
    manifest["stripped"] = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "tool": {"name": "postmortem", "version": __version__},
        "left_out": ["raw"] if with_locals else ["raw", "locals"],
    }
    content = {"evidence.json": evidence.encode(found)}
    for known in filter(lambda known: known.kept, report.FORMATS.values()):
        content[f"report{known.suffix}"] = known.render(found, diagnosis, False, 80).encode()
    return {**content, MANIFEST: as_json(manifest)}


def _write(content: Dict[str, bytes], target: Path) -> None:
    with Bundle.create(target) as new:
        for name, data in content.items():
            new.write(name, data)


def _manifest(manifest: Dict[str, Any]) -> Dict[str, Any]:
    """Mask secrets in a manifest; earlier versions wrote the command unmasked."""
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


def _pack(content: Dict[str, bytes], target: Path) -> None:
    """Write an archive with one folder in it."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(_entry(f"{target.stem}/{name}"), data, zipfile.ZIP_DEFLATED)
    write_new_file(str(target), packed.getvalue())


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, time.gmtime()[:6])
    entry.external_attr = (stat.S_IFREG | 0o600) << 16
    return entry
