"""The reader of processes that a capture is given by its caller.

It reads as the extraction will, without the capture importing the extraction.
"""

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
            """The interpreters of the process; None without one."""

        @property
        def sources(self) -> List[str]:
            """The source files named by its frames, as paths to open where known."""

        def finish(self) -> None:
            """Read everything else that an extraction reads."""

    #: (core, pid, folder of the bundle, files of the process, whether to read local variables) → what was read.
    Read = Callable[[ElfCore, int, Folder, Files, bool], ReadProcess]
    #: Imports the reader and returns it: a capture that keeps every page needs none.
    Reader = Callable[[], Read]


class How(NamedTuple):
    """The way to read the processes of a tree; ``files(pid)``: where a process's sources and libraries are."""

    files: Callable[[int], Files]
    reader: Reader
