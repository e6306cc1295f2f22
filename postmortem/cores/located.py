"""Programs and libraries by the names that a core has for them."""

from __future__ import annotations

import errno
import os
from typing import Optional

from ..foreign.files import Unfit
from ..foreign.processfiles import Files
from ..memory import Elf, ElfCore, NotElf
from ..memory.elfcore import DELETED


class Located:
    """What an ElfCore asks for the files that it names. What its user may not read (a file that is only to be executed) is
    read with our own rights if the core shows its build-id: the process has had that content. To be given the core once
    that is there."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.core: Optional[ElfCore] = None

    def __call__(self, name: str) -> Optional[int]:
        """A descriptor, or None when there is no such file. Raises OSError."""
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
            if exc.errno == errno.EINVAL:  # as the reader's child met it
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
