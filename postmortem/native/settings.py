"""The commands that gdb runs before it opens a core: core, executable and every file that a core names are untrusted."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

from .. import places
from ..errors import ToolFailed
from .corefile import CoreFile, opened

#: libthread_db would add the threads again by their own ids, which differ from the core's in a pid namespace.
NO_THREAD_DB = "set libthread-db-search-path /dev/null"
#: Load libthread_db from the system's directories alone (``$sdir``): one that lies beside the target's libpthread is
#: untrusted code.
_SYSTEM_THREAD_DB = "set libthread-db-search-path $sdir"


def settings(core: CoreFile, sysroot: Optional[Path]) -> List[str]:
    """Return the commands that gdb runs before it opens anything, after those of ``programs.gdb``.

    Raises ToolFailed for a folder that cannot be passed to gdb.
    """
    found = [_SYSTEM_THREAD_DB]
    index = _index_cache()
    if index is not None:
        found += [f"set index-cache directory {index}", "set index-cache enabled on"]
    if sysroot is not None:
        found += [f"set sysroot {_one_line(sysroot)}", NO_THREAD_DB]
        found += _search_path(core, sysroot)
    return found


def _index_cache() -> Optional[Path]:
    """Return the folder of gdb's symbol indices, by build-id; None when there is no place for it."""
    try:
        folder = places.cache("gdb-index")
        return _one_line(folder)
    except (OSError, ToolFailed):
        return None


def _search_path(core: CoreFile, sysroot: Path) -> List[str]:
    """Return the setting for the folders of the core's libraries in the sysroot.

    The loader's names for them may contain links (/lib → /usr/lib) that a sysroot made from the core's list of files
    lacks.
    """
    with opened(core, sysroot) as image:
        files = image.files if image is not None else []
    folders = {str(Path(f"{sysroot}{file.path}").parent) for file in files if ".so" in file.path}
    usable = sorted(
        folder for folder in folders if folder.isprintable() and ":" not in folder and Path(folder).is_dir()
    )
    return [f"set solib-search-path {':'.join(usable)}"] if usable else []


def _one_line(path: Path) -> Path:
    """Return the path if it is printable, so that it fits into one line of gdb's; raise ToolFailed otherwise."""
    if not str(path).isprintable():
        raise ToolFailed(f"gdb cannot be given a folder called {str(path)!r}", "rename it")
    return path
