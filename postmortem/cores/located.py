"""Opening, on this machine, of the programs and libraries that a core names."""

from __future__ import annotations

import errno
import os
from typing import Optional

from ..foreign.files import Unfit
from ..foreign.processfiles import Files
from ..memory import Elf, ElfCore, NotElf
from ..memory.elfcore import DELETED


class Located:
    """The file opener that an ElfCore is made with. It needs the core's build-ids: the caller sets ``core`` afterwards.

    A file that the process's user may execute but not read is opened with postmortem's own rights, and kept only if its
    build-id is the one that the core shows: then it contains nothing that the process had not mapped already.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self.core: Optional[ElfCore] = None

    def __call__(self, name: str) -> Optional[int]:
        """Return a descriptor, or None when there is no such file. Raises OSError."""
        try:
            return self._files.open(name)
        except FileNotFoundError:
            return None
        except PermissionError:
            wanted = self.core and (self.core.build_id(name) or self.core.build_id(name + DELETED))
            if not wanted:
                raise
            return self._as_ourselves(name, wanted)
        except OSError as exc:
            if exc.errno == errno.EINVAL:  # EINVAL: the child that reads for us met no regular file
                raise Unfit(exc.strerror or "", name) from None
            raise

    def _as_ourselves(self, name: str, wanted: str) -> int:
        descriptor = self._files.open_mapped(name)
        try:
            elf = Elf(name, os.dup(descriptor))
            found = elf.build_id
            elf.close()
        except (NotElf, ValueError):
            found = None
        except BaseException:
            os.close(descriptor)
            raise
        if found != wanted:
            os.close(descriptor)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return descriptor
