"""The bundle: a directory written step by step, readable at any moment, also when cut short.

Every file is written beside its final name and renamed, so that what is there is whole; the manifest is written
anew after each step. Mode 0700 for directories, 0600 for files: cores hold the program's secrets.

A bundle may come from another machine, as a directory or as one ``.zip``: its names and sizes are not trusted.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
import time
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Type

from .errors import CaptureFailed, NotABundle, PostmortemError

SCHEMA = "postmortem.manifest/1"
MANIFEST = "manifest.json"

#: Limits for unpacking an archive: names, bytes that take room on the disk, bytes with the holes of sparse cores.
MAX_ENTRIES = 20_000
MAX_STORED = 16 << 30
MAX_APPARENT = 1 << 40
_BLOCK = 1 << 16


class Step:
    """One step of a capture, as ``manifest.json`` lists it. ``fail`` may be called more than once: the first counts."""

    def __init__(self, name: str, subject: str) -> None:
        self.name, self.subject = name, subject
        self.ok = True
        self.error: Optional[str] = None
        self.remedy: Optional[str] = None
        self.left_out: Optional[str] = None
        self.seconds = 0.0

    def fail(self, error: str, remedy: str = "") -> None:
        if self.ok:
            self.ok, self.error, self.remedy = False, error, remedy or None

    def leave_out(self, what: str, remedy: str) -> None:
        """The step did as it was told, and what that leaves out is known."""
        self.left_out = what
        self.remedy = self.remedy or remedy

    def as_json(self) -> Dict[str, Any]:
        return {
            "step": self.name,
            "subject": self.subject,
            "ok": self.ok,
            "seconds": round(self.seconds, 4),
            "error": self.error,
            "remedy": self.remedy,
            **({"left_out": self.left_out} if self.left_out else {}),
        }


class Bundle:
    """A bundle on disk. Use ``create`` to write one and ``open`` to read one."""

    def __init__(self, path: Path, unpacked: Optional[Path] = None) -> None:
        self.path = path
        self._unpacked = unpacked
        self.manifest: Dict[str, Any] = {}
        #: Why the manifest on the disk is older than this one: the disk is full, or gone.
        self.unsaved: Optional[OSError] = None

    # ------------------------------------------------------------------ writing

    @classmethod
    def create(cls, path: Path) -> Bundle:
        """A new, empty bundle. Raises CaptureFailed when ``path`` is taken or cannot be made."""
        refuse_if_taken(path)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
            bundle = cls(path)
            bundle.manifest = {"schema": SCHEMA, "steps": [], "timings": {}}
            bundle.save_manifest()
        except OSError as exc:
            with contextlib.suppress(OSError):
                path.rmdir()  # it is empty, and no bundle
            raise CaptureFailed(
                f"the bundle {path} cannot be written: {exc.strerror or exc}", "choose another place with -o DIR"
            ) from None
        return bundle

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """A file under its temporary name; it takes its own when the block ends, and is removed when it fails."""
        target = self._target(name)
        temporary = target.with_name(f".{target.name}.part")
        descriptor = os.open(str(temporary), os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with open(descriptor, "r+b", buffering=0) as stream:
                yield stream
            temporary.rename(target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise

    def write(self, name: str, data: bytes) -> None:
        with self.writing(name) as stream:
            view = memoryview(data)
            while view:
                view = view[stream.write(view) :]

    def write_json(self, name: str, value: Any) -> None:
        """Valid UTF-8 whatever the value holds: what is no Unicode was made so by who read it.

        A line for each item, but not indented: that would be json's slow encoder, and the manifest of a tree of hundreds
        is written hundreds of times.
        """
        self.write(name, json.dumps(value, separators=(",\n", ": "), ensure_ascii=True).encode("ascii") + b"\n")

    def save_manifest(self) -> None:
        """Raises OSError; the manifest that was there before stays then."""
        self.write_json(MANIFEST, self.manifest)
        self.unsaved = None

    def try_to_save(self) -> None:
        """A disk that is full must not cost the steps that are still to come: room may come back, and the tree waits."""
        try:
            self.save_manifest()
        except OSError as exc:
            self.unsaved = exc

    @contextlib.contextmanager
    def step(self, name: str, subject: str, *, only_failure: bool = False) -> Iterator[Step]:
        """Runs one step; its failure is written down, and the capture goes on. With ``only_failure`` success is not."""
        step = Step(name, subject)
        began = time.monotonic()
        try:
            yield step
        except PostmortemError as exc:
            step.fail(str(exc), exc.next)
        except OSError as exc:
            step.fail(f"{name} of {subject}: {exc}")
        except Exception as exc:  # a defect in one step must not cost the evidence of the others
            step.fail(f"{name} of {subject} failed inside postmortem: {type(exc).__name__}: {exc}")
        finally:
            step.seconds = time.monotonic() - began
            if not (step.ok and only_failure):
                self.record(step)

    def record(self, step: Step) -> None:
        self.manifest.setdefault("steps", []).append(step.as_json())
        self.try_to_save()

    def folder(self, name: str) -> Path:
        """A folder of the bundle, made when it is not there."""
        path = self.path
        for part in PurePosixPath(name).parts:
            path = path / part
            path.mkdir(mode=0o700, exist_ok=True)
        return path

    def _target(self, name: str) -> Path:
        pure = PurePosixPath(name)
        return self.folder(str(pure.parent)) / pure.name if len(pure.parts) > 1 else self.path / name

    # ------------------------------------------------------------------ reading

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """A bundle that is there: a directory, or a ``.zip`` of one. Raises NotABundle.

        One without a readable manifest is opened too, as long as it holds something of a capture.
        """
        unpacked = None
        if not path.exists():
            raise NotABundle(f"there is no {path}")
        if not path.is_dir():
            unpacked = _unpack(path)
        bundle = cls(_root(unpacked) if unpacked else path, unpacked)
        manifest = bundle.read_json(MANIFEST)
        bundle.manifest = manifest if isinstance(manifest, dict) else {}
        if not bundle.manifest and not (bundle.path / "raw").is_dir() and not (bundle.path / "evidence.json").is_file():
            bundle.close()
            raise NotABundle(f"{path} holds no bundle", "name the directory or .zip that postmortem capture wrote")
        return bundle

    def read_json(self, name: str) -> Optional[Any]:
        """A JSON file of the bundle; None when it is missing or damaged."""
        try:
            return json.loads((self.path / name).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None

    @property
    def pids(self) -> List[int]:
        """Every process of which something was captured; in the manifest's order where it has one."""
        listed = self.manifest.get("processes")
        order = [p for p in listed if isinstance(p, int)] if isinstance(listed, list) else []
        found = {int(p.name) for p in (self.path / "raw" / "proc").glob("*") if p.name.isdigit()}
        found |= {int(p.stem) for p in (self.path / "raw" / "cores").glob("*.core") if p.stem.isdigit()}
        return order + sorted(found - set(order))

    def core(self, pid: int) -> Optional[Path]:
        path = self.path / "raw" / "cores" / f"{pid}.core"
        return path if path.is_file() else None

    @property
    def stripped(self) -> bool:
        """Was it made to be shown to others, without cores?"""
        return bool(self.manifest.get("stripped"))

    @property
    def failed_steps(self) -> List[Dict[str, Any]]:
        """The steps that failed or were refused."""
        steps = self.manifest.get("steps")
        return [s for s in steps if isinstance(s, dict) and s.get("ok") is False] if isinstance(steps, list) else []

    def close(self) -> None:
        """Removes what was unpacked."""
        if self._unpacked is not None:
            shutil.rmtree(str(self._unpacked), ignore_errors=True)

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: object, trace: object) -> None:
        self.close()


def refuse_if_taken(path: Path) -> None:
    """Raises CaptureFailed when something is at ``path`` already; an empty directory is free."""
    try:
        taken = path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir())))
    except OSError as exc:
        raise CaptureFailed(
            f"{path} cannot be looked at: {exc.strerror or exc}", "choose another place with -o DIR"
        ) from None
    if taken:
        raise CaptureFailed(f"{path} is there already and is never overwritten", "choose another name with -o DIR")


# ---------------------------------------------------------------------- archives


def _unpack(path: Path) -> Path:
    """Unpacks an archive into a private folder. Raises NotABundle."""
    folder = Path(tempfile.mkdtemp(prefix="postmortem-"))
    try:
        with zipfile.ZipFile(str(path)) as archive:
            _extract(archive, folder)
    except NotABundle:
        shutil.rmtree(str(folder), ignore_errors=True)
        raise
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as exc:
        shutil.rmtree(str(folder), ignore_errors=True)
        raise NotABundle(f"{path} cannot be unpacked: {exc}", "name a bundle's directory or its .zip") from None
    return folder


def _extract(archive: zipfile.ZipFile, folder: Path) -> None:
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise NotABundle(f"the archive names {len(entries)} files, more than a bundle has")
    stored = apparent = 0
    for entry in entries:
        target = folder.joinpath(*_safe_parts(entry))
        if entry.is_dir():
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
            continue
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with archive.open(entry) as source, open(_private(target), "wb", buffering=0) as sink:
            while True:
                block = source.read(_BLOCK)
                if not block:
                    break
                apparent += len(block)
                if block.count(0) == len(block):
                    sink.seek(len(block), os.SEEK_CUR)  # cores are mostly holes: leave them so
                else:
                    stored += len(block)
                    sink.write(block)
                if stored > MAX_STORED or apparent > MAX_APPARENT:
                    raise NotABundle("the archive unpacks to more than a bundle may hold")
            sink.truncate()


def _private(path: Path) -> int:
    return os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _safe_parts(entry: zipfile.ZipInfo) -> List[str]:
    """The entry's path below the folder. Raises NotABundle for one that would lead out of it."""
    name = entry.filename
    parts = [part for part in name.split("/") if part not in ("", ".")]
    kind = stat.S_IFMT(entry.external_attr >> 16)
    leads_out = name.startswith("/") or ".." in parts or "\\" in name or not parts
    if leads_out or kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise NotABundle(f"the archive has an entry that no bundle has: {name!r}")
    return parts


def _root(folder: Path) -> Path:
    """Where the bundle lies in an unpacked archive: at its top, or in the one directory there."""
    if (folder / MANIFEST).is_file():
        return folder
    inside = [p for p in folder.iterdir() if p.is_dir()]
    return inside[0] if len(inside) == 1 and inside[0].name != "raw" else folder
