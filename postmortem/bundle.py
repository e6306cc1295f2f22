"""The bundle: a directory written step by step, readable at any moment, also when cut short.

Every file is written beside its final name and renamed, so that what is there is whole; the manifest is written
anew after each step. Mode 0700 for directories, 0600 for files: cores hold the program's secrets.

The directory is held by descriptor, and everything in it is written and read below that (``foreign.held``): whoever may
rename the directory, because its parent is theirs, does not choose where we write. A bundle may come from another
machine, as a directory or as one ``.zip``: its names, kinds and sizes are not trusted.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from pathlib import Path
from typing import Any, BinaryIO, ContextManager, Dict, Iterator, List, Optional, Type

from .archive import Unpacked
from .errors import CaptureFailed, NotABundle, PostmortemError
from .foreign import strictjson
from .foreign.held import Folder
from .foreign.numbers import decimal
from .foreign.ways import Unsafe

SCHEMA = "postmortem.manifest/1"
MANIFEST = "manifest.json"
#: The manifest of an empty bundle.
NEW_MANIFEST: Dict[str, Any] = {"schema": SCHEMA, "steps": [], "timings": {}}
#: Bytes of a JSON file: the largest that captures of thousands of threads have written had a tenth of it.
MAX_JSON = 256 << 20
_MOST_PID = (1 << 22) - 1  # PID_MAX_LIMIT of Linux
#: Processes that a manifest may list though nothing of them was captured.
_MOST_WITHOUT = 500
_ELSEWHERE = "choose another place with -o DIR"


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
    """A bundle on disk. Use ``create`` to write one and ``open`` to read one. ``path`` is where it was found, to be shown;
    ``folder`` is what is read and written."""

    def __init__(self, path: Path, folder: Folder, unpacked: Optional[Unpacked] = None) -> None:
        self.path = path
        self.folder = folder
        self._unpacked = unpacked
        self.manifest: Dict[str, Any] = {}
        #: Why the manifest on the disk is older than this one: the disk is full, or gone.
        self.unsaved: Optional[OSError] = None

    # ------------------------------------------------------------------ writing

    @classmethod
    def create(cls, path: Path) -> Bundle:
        """A new, empty bundle. Raises CaptureFailed when ``path`` is taken or cannot be made."""
        try:
            folder = _own_folder(path)
        except OSError as exc:
            raise CaptureFailed(f"the bundle {path} cannot be written: {_reason(exc)}", _ELSEWHERE) from None
        bundle = cls(path, folder)
        bundle.manifest = {**NEW_MANIFEST, "steps": [], "timings": {}}
        try:
            bundle.save_manifest()
        except OSError as exc:
            folder.close()
            with contextlib.suppress(OSError):
                path.rmdir()  # it is empty, and no bundle
            raise CaptureFailed(f"the bundle {path} cannot be written: {_reason(exc)}", _ELSEWHERE) from None
        return bundle

    @classmethod
    def resume(cls, path: Path) -> Bundle:
        """The bundle that another process of ours has just written. Raises NotABundle."""
        try:
            bundle = cls(path, Folder.take_over(str(path)))
        except OSError as exc:
            raise NotABundle(f"{path} cannot be read: {_reason(exc)}") from None
        bundle._read_manifest()
        return bundle

    def writing(self, name: str) -> ContextManager[BinaryIO]:
        """A file under its temporary name; it takes its own when the block ends, and is removed when it fails."""
        return self.folder.writing(name)

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file. Raises OSError."""
        self.folder.write(name, data)

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file. Raises OSError."""
        self.write(name, as_json(value))

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

    # ------------------------------------------------------------------ reading

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """A bundle that is there: a directory, or a ``.zip`` of one. Raises NotABundle.

        One without a readable manifest is opened too, as long as it holds something of a capture.
        """
        bundle = _opened(path)
        bundle._read_manifest()
        if not bundle.manifest and not bundle.folder.has("raw") and not bundle.folder.has("evidence.json"):
            bundle.close()
            raise NotABundle(f"{path} holds no bundle", "name the directory or .zip that postmortem capture wrote")
        return bundle

    def _read_manifest(self) -> None:
        manifest = self.read_json(MANIFEST)
        self.manifest = manifest if isinstance(manifest, dict) else {}

    def read_json(self, name: str) -> Optional[Any]:
        """A JSON file of the bundle; None when it is missing or damaged."""
        try:
            return strictjson.loads(self.folder.read(name, MAX_JSON))
        except (OSError, ValueError):
            return None

    @property
    def place(self) -> Path:
        """Where its files lie, for programs that are given a path: ``path``, or the folder of an unpacked archive."""
        return self.path if self._unpacked is None else self._unpacked.place / (self._unpacked.top() or "")

    @property
    def owner(self) -> int:
        """The user that the directory or the archive belongs to."""
        return self.folder.owner if self._unpacked is None else self._unpacked.owner

    @property
    def pids(self) -> List[int]:
        """Every process of which something was captured; in the manifest's order where it has one. It may list some more, of
        which nothing could be."""
        return pids_of(self.folder, self.manifest)

    def has_core(self, pid: int) -> bool:
        """Whether there is a core of this process."""
        return self.folder.has(core_name(pid))

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
        """Gives the folder up; removes what was unpacked."""
        self.folder.close()
        if self._unpacked is not None:
            self._unpacked.close()

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: object, trace: object) -> None:
        self.close()


def as_json(value: Any) -> bytes:
    """Valid UTF-8 whatever the value holds: what is no Unicode was made so by who read it.

    A line for each item, but not indented: that would be json's slow encoder, and the manifest of a tree of hundreds is
    written hundreds of times.
    """
    return json.dumps(value, separators=(",\n", ": "), ensure_ascii=True).encode("ascii") + b"\n"


def pids_of(folder: Folder, manifest: Dict[str, Any]) -> List[int]:
    """Every process of which something was captured, in the manifest's order where it has one. It may list some more, of which
    nothing could be."""
    listed = manifest.get("processes")
    order = [p for p in listed if type(p) is int and 0 < p <= _MOST_PID] if isinstance(listed, list) else []
    found = {_number(name) for name in folder.names("raw/proc")}
    found |= {_number(name[: -len(".core")]) for name in folder.names("raw/cores") if name.endswith(".core")}
    order = list(dict.fromkeys(order))
    without = set([pid for pid in order if pid not in found][_MOST_WITHOUT:])
    return [pid for pid in order if pid not in without] + sorted(found - {0} - set(order))


def core_name(pid: int) -> str:
    """Where a bundle has the core of a process."""
    return f"raw/cores/{pid}.core"


def _number(name: str) -> int:
    """The number that a file is named after; 0 for any other name."""
    return decimal(name, _MOST_PID) or 0


def _opened(path: Path) -> Bundle:
    try:
        return Bundle(path, Folder.at(str(path)))
    except NotADirectoryError:
        pass
    except FileNotFoundError:
        raise NotABundle(f"there is no {path}") from None
    except OSError as exc:
        raise NotABundle(f"{path} cannot be read: {_reason(exc)}", "check its permissions") from None
    unpacked = Unpacked(path)
    top = unpacked.top()
    return Bundle(path, unpacked.folder.child(top) if top else Folder.at(".", unpacked.folder.descriptor), unpacked)


def _own_folder(path: Path) -> Folder:
    """A new directory, or an empty one that is ours alone. Raises OSError, CaptureFailed."""
    try:
        return Folder.create(str(path))
    except FileExistsError:
        refuse_if_taken(path)
    folder = Folder.take_over(str(path))
    os.fchmod(folder.descriptor, 0o700)
    if folder.names(most=1):
        folder.close()
        raise _taken(path)
    return folder


def refuse_if_taken(path: Path) -> None:
    """Raises CaptureFailed when something is at ``path`` already; an empty directory is free if nobody else may write to it."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as exc:
        raise CaptureFailed(f"{path} cannot be looked at: {_reason(exc)}", _ELSEWHERE) from None
    if not stat.S_ISDIR(mode):
        raise _taken(path)
    try:
        with Folder.take_over(str(path)) as folder:
            if folder.names(most=1):
                raise _taken(path)
    except Unsafe as exc:
        raise CaptureFailed(f"{path} is there already, and {exc.strerror}", _ELSEWHERE) from None
    except OSError as exc:
        raise CaptureFailed(f"{path} cannot be looked at: {_reason(exc)}", _ELSEWHERE) from None


def _taken(path: Path) -> CaptureFailed:
    return CaptureFailed(f"{path} is there already and is never overwritten", "choose another name with -o DIR")


def _reason(exc: OSError) -> str:
    return exc.strerror or str(exc)
