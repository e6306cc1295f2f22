"""The child's loop: the first message tells what gdb has open, the others are commands, until gdb closes the socket."""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from ..cpython.objects.builtins import NotThat
from ..errors import PostmortemError
from ..memory import Fault
from . import answers
from .subject import Named, NotPython, Subject, opened
from .wire import Gone, Link

#: Lines per message.
_AT_ONCE = 500


def main(arguments: Sequence[str]) -> int:
    """Answer commands until gdb ends.

    ``arguments``: a ``Named`` as JSON or ""; the number of the socket's descriptor.
    """
    descriptor = int(arguments[1])
    _end_with_gdb(descriptor)
    link = Link(descriptor)
    with contextlib.suppress(Gone), contextlib.ExitStack() as held:
        told = link.receive()
        known = Named(**json.loads(arguments[0])) if arguments[0] else Named()
        subject: List[Subject] = []
        if told.get("core") is not None:  # read before the first command
            with contextlib.suppress(Exception):  # raised again by the first command
                subject.append(held.enter_context(opened(link, told, known)))
        while True:
            asked = link.receive()
            _answer(link, asked, told, known, subject, held)
    return 0


def _answer(
    link: Link,
    asked: Dict[str, Any],
    told: Dict[str, Any],
    known: Named,
    subject: List[Subject],
    held: contextlib.ExitStack,
) -> None:
    """Answer one command.

    ``subject``: empty before the first one.
    """
    try:
        if not subject:
            subject.append(held.enter_context(opened(link, told, known)))
        for lines in _pieces(answers.to(subject[0], asked)):
            link.send({"lines": lines})
    except Gone:
        raise
    except PostmortemError as exc:
        link.send({"error": exc.sentence()})
    except (answers.Wrong, NotPython) as exc:
        link.send({"error": str(exc)})
    except (Fault, NotThat) as exc:
        link.send({"error": f"this memory cannot be read: {exc}"})
    except Exception as exc:  # a core is hostile input
        link.send({"error": f"{type(exc).__name__}: {exc}; this is a defect of postmortem"})
    else:
        link.send({"end": True})


def _pieces(lines: Iterator[answers.Line]) -> Iterator[List[Tuple[str, str]]]:
    piece: List[Tuple[str, str]] = []
    for line in lines:
        piece.append(line)
        if len(piece) == _AT_ONCE:
            yield piece
            piece = []
    yield piece


def _end_with_gdb(descriptor: int) -> None:
    """Exit as soon as gdb closes its end, from a separate thread: the main one may be computing."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLRDHUP)

    def wait() -> None:
        waiting.poll()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
