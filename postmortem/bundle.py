"""The bundle: a directory written step by step, readable at any time, even when the capture was cut short.

Every file is written under a temporary name and renamed, so that each existing one is complete; the manifest is
rewritten after each step. Mode 0700 for directories, 0600 for files: cores contain the program's secrets.

The directory is held by descriptor, and everything in it is written and read below that (``foreign.held``): a user who
can rename the directory, because its parent is theirs, cannot choose where we write. A bundle may come from another
machine, as a directory or as one ``.zip``: its names, types and sizes are untrusted.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from pathlib import Path
from typing import Any, BinaryIO, ContextManager, Dict, Iterator, List, Literal, Optional, Type, Union

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
#: Bytes of a JSON file: ten times the largest that captures of thousands of threads have written.
MAX_JSON = 256 << 20
_MOST_PID = (1 << 22) - 1  # PID_MAX_LIMIT of Linux
#: Processes that a manifest may list without anything captured of them.
_MOST_WITHOUT = 500
_ELSEWHERE = "choose another place with -o DIR"


#: What a step of a capture lacks. The slug of an error (see ``errors``) if one ended it; here what has none.
StepCode = Literal[
    # a process, its end, its descendants
    "ended-early", "ended-meanwhile", "hidden-process", "descendants-left-out", "still-running", "writes-uncounted",
    # the window
    "interrupted", "window-ended-early", "window-shortened", "too-many-to-watch", "not-sampled",
    # cores and files
    "no-core-wanted", "no-core-here", "core-left-out", "core-incomplete", "overtaken", "not-rehearsed", "too-many-cores",
    "no-time-for-core", "root-silent", "files-missing",
    # the system, or postmortem itself
    "system-error", "defect",
]  # fmt: skip
Field = Union[int, float, str, List[int]]


class Step:
    """One step of a capture, as listed in ``manifest.json``.

    ``code`` and ``fields`` say what it lacks; ``error`` and ``left_out`` say it in words, which are only shown.
    """

    def __init__(self, name: str, subject: str) -> None:
        self.name, self.subject = name, subject
        self.ok = True
        self.code: Optional[str] = None
        self.fields: Dict[str, Field] = {}
        self.error: Optional[str] = None
        self.remedy: Optional[str] = None
        self.left_out: Optional[str] = None
        self.seconds = 0.0

    def fail(self, code: StepCode, error: str, remedy: str = "", **fields: Field) -> None:
        """Mark the step as failed; only the first call counts."""
        self._fail(code, error, remedy, fields)

    def fail_with(self, exc: Exception) -> None:
        """Mark the step as failed with an error; only the first call counts."""
        where = f"{self.name} of {self.subject}"
        if isinstance(exc, PostmortemError):
            self._fail(exc.slug, str(exc), exc.next, {"path": exc.path} if exc.path is not None else {})
        elif isinstance(exc, OSError):
            self._fail("system-error", f"{where}: {exc}", "", {"errno": exc.errno or 0})
        else:
            self._fail("defect", f"{where} failed inside postmortem: {type(exc).__name__}: {exc}", "", {})

    def _fail(self, code: str, error: str, remedy: str, fields: Dict[str, Field]) -> None:
        if self.ok:
            self.ok, self.error, self.remedy = False, error, remedy or None
            self.code, self.fields = code, fields

    def leave_out(self, code: StepCode, what: str, remedy: str, **fields: Field) -> None:
        """Record what the step left out on purpose, with a remedy."""
        self.left_out = what
        self.remedy = self.remedy or remedy
        if self.ok:
            self.code, self.fields = code, fields

    def as_json(self) -> Dict[str, Any]:
        """Return the step's entry in the manifest."""
        return {
            "step": self.name,
            "subject": self.subject,
            "ok": self.ok,
            "seconds": round(self.seconds, 4),
            "error": self.error,
            "remedy": self.remedy,
            **({"left_out": self.left_out} if self.left_out else {}),
            **({"code": self.code} if self.code else {}),
            **({"fields": self.fields} if self.fields else {}),
        }


class Bundle:
    """A bundle on disk, made by ``create`` to be written or ``open`` to be read.

    - ``path``: where it was found, for messages
    - ``folder``: the directory that is read and written
    """

    def __init__(self, path: Path, folder: Folder, unpacked: Optional[Unpacked] = None) -> None:
        self.path = path
        self.folder = folder
        self._unpacked = unpacked
        self.manifest: Dict[str, Any] = {}
        #: Why the manifest on disk is older than this one, such as a full disk; else None.
        self.unsaved: Optional[OSError] = None

    # ------------------------------------------------------------------ writing

    @classmethod
    def create(cls, path: Path) -> Bundle:
        """Make a new, empty bundle. Raises CaptureFailed when ``path`` is taken or cannot be made."""
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
        """Open the bundle that another process of ours has just written. Raises NotABundle."""
        try:
            bundle = cls(path, Folder.take_over(str(path)))
        except OSError as exc:
            raise NotABundle(f"{path} cannot be read: {_reason(exc)}") from None
        bundle._read_manifest()
        return bundle

    def writing(self, name: str) -> ContextManager[BinaryIO]:
        """Open a file under a temporary name; it is renamed when the block ends, and removed when the block fails."""
        return self.folder.writing(name)

    def write(self, name: str, data: bytes) -> None:
        """Write a whole file. Raises OSError."""
        self.folder.write(name, data)

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file. Raises OSError."""
        self.write(name, as_json(value))

    def save_manifest(self) -> None:
        """Write the manifest. Raises OSError; the previous one is kept then."""
        self.write_json(MANIFEST, self.manifest)
        self.unsaved = None

    def try_to_save(self) -> None:
        """Write the manifest; a failure is kept in ``unsaved``: a full disk must not cost the steps to come."""
        try:
            self.save_manifest()
        except OSError as exc:
            self.unsaved = exc

    @contextlib.contextmanager
    def step(self, name: str, subject: str, *, only_failure: bool = False) -> Iterator[Step]:
        """Run one step; record its failure instead of raising it, and its success unless ``only_failure``."""
        step = Step(name, subject)
        began = time.monotonic()
        try:
            yield step
        except Exception as exc:  # a defect in one step must not cost the evidence of the others
            step.fail_with(exc)
        finally:
            step.seconds = time.monotonic() - began
            if not (step.ok and only_failure):
                self.record(step)

    def record(self, step: Step) -> None:
        """Add a step to the manifest."""
        self.manifest.setdefault("steps", []).append(step.as_json())
        self.try_to_save()

    # ------------------------------------------------------------------ reading

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """Open an existing bundle: a directory, or a ``.zip`` of one. Raises NotABundle.

        One without a readable manifest is opened too, if it contains anything of a capture.
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
        """Return the value of a JSON file in the bundle; None when it is missing or damaged."""
        try:
            return strictjson.loads(self.folder.read(name, MAX_JSON))
        except (OSError, ValueError):
            return None

    @property
    def place(self) -> Path:
        """Path of its files for other programs: ``path``, or the folder of an unpacked archive."""
        return self.path if self._unpacked is None else self._unpacked.place / (self._unpacked.top() or "")

    @property
    def owner(self) -> int:
        """Uid of the owner of the directory or archive."""
        return self.folder.owner if self._unpacked is None else self._unpacked.owner

    @property
    def pids(self) -> List[int]:
        """Every process of which something was captured; see ``pids_of``."""
        return pids_of(self.folder, self.manifest)

    def has_core(self, pid: int) -> bool:
        """Return whether there is a core of this process."""
        return self.folder.has(core_name(pid))

    @property
    def stripped(self) -> bool:
        """Whether cores and secrets were removed from it, to be shown to others."""
        return bool(self.manifest.get("stripped"))

    @property
    def failed_steps(self) -> List[Dict[str, Any]]:
        """The steps that failed or were refused."""
        steps = self.manifest.get("steps")
        return [s for s in steps if isinstance(s, dict) and s.get("ok") is False] if isinstance(steps, list) else []

    def close(self) -> None:
        """Close the folder, and remove what was unpacked."""
        self.folder.close()
        if self._unpacked is not None:
            self._unpacked.close()

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: object, trace: object) -> None:
        self.close()


def as_json(value: Any) -> bytes:
    """Return JSON in ASCII, whatever the value contains.

    One line for each item, but not indented, which needs json's slow encoder: the manifest of a tree of hundreds is
    written hundreds of times.
    """
    return json.dumps(value, separators=(",\n", ": "), ensure_ascii=True).encode("ascii") + b"\n"


def pids_of(folder: Folder, manifest: Dict[str, Any]) -> List[int]:
    """Return every process of which something was captured, in the manifest's order if it has one.

    A limited number of listed processes without any captured file is included.
    """
    listed = manifest.get("processes")
    order = [p for p in listed if type(p) is int and 0 < p <= _MOST_PID] if isinstance(listed, list) else []
    found = {_number(name) for name in folder.names("raw/proc")}
    found |= {_number(name[: -len(".core")]) for name in folder.names("raw/cores") if name.endswith(".core")}
    order = list(dict.fromkeys(order))
    without = set([pid for pid in order if pid not in found][_MOST_WITHOUT:])
    return [pid for pid in order if pid not in without] + sorted(found - {0} - set(order))


def core_name(pid: int) -> str:
    """Return the name in a bundle of a process's core."""
    return f"raw/cores/{pid}.core"


def _number(name: str) -> int:
    """Return the pid that a file is named after; 0 for any other name."""
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
    """Make a new directory, or take an empty one that is ours alone. Raises OSError, CaptureFailed."""
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
    """Raise CaptureFailed when ``path`` exists, unless it is an empty directory that no other user can write to."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as exc:
        raise CaptureFailed(f"{path} cannot be examined: {_reason(exc)}", _ELSEWHERE) from None
    if not stat.S_ISDIR(mode):
        raise _taken(path)
    try:
        with Folder.take_over(str(path)) as folder:
            if folder.names(most=1):
                raise _taken(path)
    except Unsafe as exc:
        raise CaptureFailed(f"{path} already exists, and {exc.strerror}", _ELSEWHERE) from None
    except OSError as exc:
        raise CaptureFailed(f"{path} cannot be examined: {_reason(exc)}", _ELSEWHERE) from None


def _taken(path: Path) -> CaptureFailed:
    return CaptureFailed(f"{path} already exists and is never overwritten", "choose another name with -o DIR")


def _reason(exc: OSError) -> str:
    return exc.strerror or str(exc)
