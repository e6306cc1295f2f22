"""What tests do with bundles and their files by paths."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

from postmortem.evidence import Evidence, Sample
from postmortem.extract.assemble.bundles import from_bundle
from postmortem.extract.assemble.how import How
from postmortem.extract.recorded.surroundings import Surroundings
from postmortem.extract.recorded.window import Window, read_samples, read_window
from postmortem.foreign.held import Folder
from postmortem.foreign.processfiles import Files, Shelves, below


def evidence_of(bundle: Path, how: How = How(), until: Optional[float] = None) -> Evidence:  # noqa: B008 - a tuple
    """Evidence of a bundle's directory."""
    with Folder.at(str(bundle)) as folder:
        return from_bundle(folder, bundle, how, until=until)


@contextlib.contextmanager
def bundle_with(file: Path, name: str) -> Iterator[Folder]:
    """A bundle of one file, which has this name there; an empty one where there is no such file."""
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        target = Path(folder, name)
        target.parent.mkdir(parents=True)
        if file.exists():
            shutil.copy(file, target)
        with Folder.at(folder) as held:
            yield held


def samples_of(trace: Path, rate: float = 50.0) -> Dict[int, Tuple[Sample, ...]]:
    """What a trace of py-spy's holds."""
    with bundle_with(trace, "raw/pyspy/1.chrometrace.json") as folder:
        return read_samples(folder, 1, rate)


def window_of(file: Path) -> Window:
    """What a window.json holds."""
    with bundle_with(file, "raw/proc/1/window.json") as folder:
        return read_window(folder, 1)


def surroundings_of(file: Path) -> Surroundings:
    """What a machine.json holds."""
    with bundle_with(file, "raw/proc/machine.json") as folder:
        return Surroundings(folder)


@contextlib.contextmanager
def files_here() -> Iterator[Files]:
    """The files of this machine, as we may read them."""
    with Shelves(below(None)) as shelves:
        yield shelves.of({})


def lines_of(name: str) -> Optional[List[str]]:
    """The lines of one source file of this machine."""
    with files_here() as files:
        return files.lines(name)
