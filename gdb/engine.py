"""The child that answers the commands: postmortem in its own interpreter.

It reads a core by itself; for a live process gdb describes the threads and reads the memory.
postmortem/gdbchild/wire.py documents the protocol.

How the child is started:

- `postmortem debug` passes its command in POSTMORTEM_ENGINE
- a gdb started by hand uses the interpreter named by POSTMORTEM_PYTHON, or that of this file's installation
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, Generator, List, Optional, Sequence, Tuple

import gdb

from . import target

#: Seconds per command; the child allows its own gdb, which unwinds a core's native stacks, a third of that.
DEADLINE_S = 180.0
#: Seconds between checks for Ctrl-C.
LOOK_S = 0.2
#: Seconds to wait for the child's end before it is killed.
PATIENCE_S = 0.5
LENGTH = struct.Struct("<I")
MOST_BYTES = 64 << 20
MOST_LINES = 500_000

_HERE = Path(__file__).parent
_STYLES = {"bold": "1", "faint": "2", "red": "31", "yellow": "33", "green": "32"}
#: Variables for the user, writable directories and language, as in postmortem/programs.py.
_KEPT = ("HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "XDG_CACHE_HOME", "PATH")
_KEPT_PREFIXES = ("LC_", "POSTMORTEM_")
_BOOT = (
    "import sys; sys.path.insert(0, {root!r}); import postmortem; del sys.path[0]; "
    "from postmortem.gdbchild.child import main; sys.exit(main(sys.argv[1:]))"
)
_NO_INTERPRETER = (
    "postmortem's own interpreter is not known in this gdb: start with `postmortem debug CORE`, or name it first with "
    "`python import os; os.environ['POSTMORTEM_PYTHON'] = '/path/to/python'`"
)


class Engine:
    """A child for the current state of the target."""

    current: Optional[Engine] = None

    @classmethod
    def get(cls) -> Engine:
        """Return the child, started if necessary. Raises gdb.GdbError."""
        if cls.current is None:
            cls.current = Engine(target.told())
        return cls.current

    @classmethod
    def forget(cls, *_event: object) -> None:
        """Drop the child: the target has changed, and what was read of it is outdated."""
        engine, cls.current = cls.current, None
        if engine is not None:
            engine.close()

    @classmethod
    def begin_early(cls) -> None:
        """Start the child before the first command if `postmortem debug` requests it; it reads the core meanwhile."""
        if "early" in _handed():
            with contextlib.suppress(gdb.error, gdb.GdbError):
                cls.get()

    def __init__(self, told: Dict[str, Any]) -> None:
        words, environment = _command()
        self._socket, theirs = socket.socketpair()
        self._said = os.memfd_create("postmortem-said", os.MFD_CLOEXEC)
        core = re.match(r"/proc/self/fd/(\d+)$", told.get("core") or "")
        inherited = [theirs.fileno(), *([int(core[1])] if core else [])]
        try:
            self._program = words[0]
            self._process = subprocess.Popen(
                [*words, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                cwd="/proc/self/fdinfo",  # a directory in which no file can be made
                env=environment,
                pass_fds=inherited,
                start_new_session=True,  # Ctrl-C is for gdb
            )
        except OSError as exc:
            self._socket.close()
            os.close(self._said)
            raise gdb.GdbError(f"{words[0]} cannot be started: {exc.strerror or exc}") from None
        finally:
            theirs.close()
        self._socket.setblocking(False)
        self._send(told, time.monotonic() + DEADLINE_S)

    def close(self) -> None:
        """End the child by closing its socket; kill it if it does not exit."""
        self._socket.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE_S)
        os.close(self._said)

    # ------------------------------------------------------------------ one command

    def ask(self, command: str, arguments: Sequence[str]) -> Generator[str, None, None]:
        """Yield the lines to print.

        An answer that is not read completely ends the child. Raises gdb.GdbError.
        """
        whole = False
        try:
            until = time.monotonic() + DEADLINE_S
            question = {"command": command, "arguments": list(arguments)}
            self._send({**question, "selected": target.selected(), "threads": target.numbers()}, until)
            left = MOST_LINES
            while True:
                answer = self._receive(until)
                if "end" in answer or "error" in answer:
                    whole = True
                    if "error" in answer:
                        raise gdb.GdbError(_plain(answer["error"]))
                    return
                if "lines" in answer:
                    lines = _lines(answer["lines"])
                    left -= len(lines)
                    if left < 0:
                        raise gdb.GdbError(f"the child's answer has more than {MOST_LINES:,} lines")
                    yield from lines
                elif "read" in answer or "stack" in answer:
                    self._send(target.answer(answer, until), until)
                else:
                    raise _rubbish()
        finally:
            if not whole and Engine.current is self:
                Engine.forget()

    def _send(self, value: Dict[str, Any], until: float) -> None:
        data = json.dumps(value).encode()
        rest = memoryview(LENGTH.pack(len(data)) + data)
        while rest:
            self._wait(select.POLLOUT, until)
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                continue
            except OSError:
                raise gdb.GdbError(self._ended()) from None

    def _receive(self, until: float) -> Dict[str, Any]:
        (size,) = LENGTH.unpack(self._exactly(LENGTH.size, until))
        if size > MOST_BYTES:
            raise _rubbish()
        try:
            value = json.loads(self._exactly(size, until))
        except (ValueError, RecursionError):
            raise _rubbish() from None
        if not isinstance(value, dict):
            raise _rubbish()
        return value

    def _exactly(self, size: int, until: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            self._wait(select.POLLIN, until)
            try:
                part = self._socket.recv(min(size - len(found), 1 << 20))
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                raise gdb.GdbError(self._ended())
            found += part
        return bytes(found)

    def _wait(self, event: int, until: float) -> None:
        """Wait until the socket is ready for an event of poll(2). Raises gdb.GdbError."""
        if self._socket.fileno() < 0:
            raise gdb.GdbError("the target has changed meanwhile: repeat the command")
        waiting = select.poll()  # select() takes no descriptor above 1023, and gdb may have more files open
        waiting.register(self._socket, event)
        while time.monotonic() < until:
            if waiting.poll(LOOK_S * 1000):
                return
        raise gdb.GdbError(f"no answer in {DEADLINE_S:g} s: `postmortem analyze` takes as long as it needs")

    def _ended(self) -> str:
        """Return why there is no answer, with the last line that the child wrote to stderr."""
        try:
            status = str(self._process.wait(PATIENCE_S))
        except subprocess.TimeoutExpired:
            status = "none"
        size = os.lseek(self._said, 0, os.SEEK_END)
        words = os.pread(self._said, 4096, max(0, size - 4096)).decode("utf-8", "replace").strip().splitlines()
        last = f": {_plain(words[-1])[:300]}" if words else ""
        return f"postmortem's interpreter ({self._program}) has ended without an answer, status {status}{last}"


def _rubbish() -> gdb.GdbError:
    return gdb.GdbError(
        "the child's answer cannot be understood: gdb's scripts and postmortem may be of different versions"
    )


def _lines(told: Any) -> List[str]:
    try:
        return [_styled(str(text), str(style)) for style, text in told]
    except (TypeError, ValueError):
        raise _rubbish() from None


def _styled(text: str, style: str) -> str:
    text, code = _plain(text), _STYLES.get(style)
    coloured = code and gdb.parameter("style enabled") and os.isatty(1) and not os.environ.get("NO_COLOR")
    return f"\x1b[{code}m{text}\x1b[0m" if coloured else text


def _plain(text: Any) -> str:
    return "".join(char if char.isprintable() else "?" for char in str(text))


# ---------------------------------------------------------------------- how it is started


def _handed() -> Dict[str, Any]:
    try:
        found = json.loads(os.environ.get("POSTMORTEM_ENGINE", "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _command() -> Tuple[List[str], Dict[str, str]]:
    """Return (the child's command without the last word, its environment). Raises gdb.GdbError."""
    handed = _handed()
    if handed:
        return [str(word) for word in handed["words"]], {str(k): str(v) for k, v in handed["environment"].items()}
    named = os.environ.get("POSTMORTEM_PYTHON")
    python = Path(named) if named else _beside()
    if python is None or not python.is_absolute():
        raise gdb.GdbError(_NO_INTERPRETER)
    kept = {k: v for k, v in os.environ.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES)}
    return [str(python), "-I", "-c", _BOOT.format(root=str(_root())), ""], kept


def _root() -> Path:
    """Return the directory with the package: above this one in a wheel, beside it in a checkout."""
    above = _HERE.parent
    return above.parent.parent if above.name == "_shipped" else above


def _beside() -> Optional[Path]:
    """Return the interpreter of PREFIX/lib/pythonX.Y/site-packages or of the checkout's .venv; None if there is none."""
    root = _root()
    found = root / ".venv" / "bin" / "python"
    if root.name in ("site-packages", "dist-packages"):
        found = root.parents[2] / "bin" / root.parent.name
    return found if os.access(found, os.X_OK) else None
