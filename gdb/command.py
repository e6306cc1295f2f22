"""What every command has: the session that it reads, and failures that are one sentence."""

from __future__ import annotations

from typing import Iterator, Optional, Sequence

import gdb
from postmortem.cpython.objects.builtins import NotThat
from postmortem.memory import Fault

from .session import Session
from .show import clean, write


class Store:
    """The session of the target as it stands; forgotten when it moves."""

    session: Optional[Session] = None

    @classmethod
    def get(cls) -> Session:
        if cls.session is None:
            cls.session = Session()
        return cls.session

    @classmethod
    def forget(cls, *_event: object) -> None:
        cls.session = None


class PmCommand(gdb.Command):
    """A command that fails with one sentence."""

    name = ""

    def __init__(self) -> None:
        super().__init__(self.name, gdb.COMMAND_STACK)

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        try:
            write(self.run(gdb.string_to_argv(argument)))
        except (gdb.GdbError, KeyboardInterrupt):
            raise
        except (Fault, NotThat) as exc:
            raise gdb.GdbError(f"{self.name}: this memory cannot be read: {exc}") from None
        except gdb.error as exc:
            raise gdb.GdbError(f"{self.name}: {exc}") from None
        except Exception as exc:  # a core is hostile input
            raise gdb.GdbError(f"{self.name}: {type(exc).__name__}: {exc}; this is a defect of postmortem") from None

    def run(self, arguments: Sequence[str]) -> Iterator[str]:
        raise NotImplementedError


def tids(numbers: Sequence[int], most: int = 20) -> str:
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return (", ".join(map(str, numbers[:most])) + more) or "none"


def problems(session: Session) -> Iterator[str]:
    for problem in session.python.problems[:10]:
        yield f"({clean(problem)})"
