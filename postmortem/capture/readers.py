"""The reader of processes that a capture is given: it reads as the extraction will, and the capture knows no extraction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, List, NamedTuple, Optional

if TYPE_CHECKING:
    from typing import Protocol

    from ..cpython.state.interpreter import Python
    from ..foreign.held import Folder
    from ..foreign.processfiles import Files
    from ..memory import ElfCore

    class ReadProcess(Protocol):
        """A process whose threads and frames have been read."""

        @property
        def python(self) -> Optional[Python]:
            """Its interpreters; None without one."""

        @property
        def sources(self) -> List[str]:
            """The source files that its frames name, as paths to open where that is known."""

        def finish(self) -> None:
            """Read everything else that an extraction reads."""

    #: (core, pid, folder of the bundle, files of the process, with local variables?) → what was read.
    Read = Callable[[ElfCore, int, Folder, Files, bool], ReadProcess]
    #: Imports it: a capture that keeps every page needs none.
    Reader = Callable[[], Read]


class How(NamedTuple):
    """How the processes of a tree are read. ``files(pid)``: where a process's sources and libraries are."""

    files: Callable[[int], Files]
    reader: Reader
