"""Native stacks of every thread of a core, as JSON lines. Runs inside gdb: ``gdb -batch -x stacks.py EXE CORE``.

Input, from the environment:
  POSTMORTEM_STACKS         the file to write (created anew)
  POSTMORTEM_STACKS_UNTIL   CLOCK_MONOTONIC seconds after which no further frame is unwound
  POSTMORTEM_STACKS_FILES   optional: JSON, [[start, end, file, bias], ...] of libraries that the core's own list may
                            lack; the names are safe as words of a gdb command
  POSTMORTEM_STACKS_NEXT    optional: JSON, [exe, [[core, output, files], ...]]: further cores of the same program, each
                            with its own output file; exe and cores are safe names, too. gdb reads the symbols of a file
                            once for all cores: 0.04 s for each further one, where a separate gdb takes 0.2 s

Output, one JSON value per line, each flushed, so that a gdb that is killed or crashes leaves what it had:
  {"gdb": version, "threads": N}
  {"tid": LWP, "frames": [{"function", "module", "address", "file", "line"}, ...], "error": null | text,
   "cause": null | "late" | "many" | "memory"}
  {"end": true | false, "seconds": s, "stopped": null | reason for a stop before the last thread}
Frames run from the most recent call to the oldest. ``function`` is null without a symbol. ``module`` is the shared
library's path, null for the main program and for memory without a library; the caller knows the mappings.
A later line for a thread replaces an earlier one.

Libraries are loaded when stacks reach them (gdb starts with ``auto-solib-add off``): a frame's unwind tables are
needed only once its pc is known, and of some fifty mapped libraries about eight are on stacks.

gdb embeds the distribution's Python, 3.6 at the oldest, without site-packages. ``import gdb.x`` would search gdb's own
package although this file is in a directory of that name; it is therefore a single file, run by path.
"""

import json
import os
import re
import time
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import gdb

MAX_FRAMES = 1024  # of one thread, the innermost ones
MAX_BYTES = 256 << 20  # of output: 2,000,000 frames
MAX_NAME = 1000  # characters of a symbol or file name

#: gdb raises RuntimeError for most failures; names that are not UTF-8 raise UnicodeError.
FAILURES = (gdb.error, RuntimeError, ValueError, OverflowError)


#: A frame, or another line of the output.
Line = Dict[str, Any]
#: (start, end, path, load bias) of a mapped library.
Mapped = Tuple[int, int, str, int]


class Stop(Exception):
    """End of the whole run; the message gives the reason."""


OUT_OF_TIME = "out of time"


class Libraries:
    """The shared libraries, whose symbols and unwind tables are loaded when a stack reaches them."""

    def __init__(self, files: Sequence[Mapped]) -> None:
        self.files = files
        self.tried: Set[Optional[str]] = {objfile.filename for objfile in gdb.objfiles()}
        self.all = False

    def load_for(self, pc: int) -> Tuple[Optional[str], bool]:
        """Return (path of the library that owns pc, whether it was just loaded, which invalidates frames)."""
        name = gdb.solib_name(pc)
        if name is None:
            return self.load_unlisted(pc)
        if name in self.tried or self.all:
            return name, False
        self.tried.add(name)
        if any(ord(char) > 127 for char in name):
            self.load_all()  # the number of gdb's regex characters for these depends on its locale
        else:
            # The name comes from the core, and gdb.execute() runs every line of its text as a command.
            gdb.execute("sharedlibrary ^" + re.sub(r"[^A-Za-z0-9/_-]", ".", name) + "$", to_string=True)
        return name, True

    def load_unlisted(self, pc: int) -> Tuple[Optional[str], bool]:
        """Return (path, whether it was just loaded) for a library missing in gdb's list."""
        for start, end, file, bias in self.files:
            if start <= pc < end:
                stale = file not in self.tried
                if stale:
                    self.tried.add(file)
                    gdb.execute(f"add-symbol-file {file} -o {bias:#x}", to_string=True)
                return file, stale
        return None, False

    def load_all(self) -> None:
        """Load all libraries."""
        self.all = True
        gdb.execute("sharedlibrary", to_string=True)


class Walker:
    """An unwinder of the selected thread."""

    def __init__(self, libraries: Libraries, until: float) -> None:
        self.libraries = libraries
        self.until = until
        self.lines: Dict[
            Tuple[int, Optional[str], int], Tuple[Optional[str], Optional[int]]
        ] = {}  # (pc, name, frame type) -> (file, line): few places make up most stacks

    def stack(self) -> Tuple[List[Line], Optional[str], Optional[str]]:
        """Return (frames, error or None, its cause or None) of the selected thread."""
        while True:
            frames: List[Line] = []
            try:
                if self.walk(frames):
                    return frames, None, None
            except FAILURES as exc:
                return frames, clipped(str(exc) or type(exc).__name__), None
            except Ended as end:
                return frames, str(end), end.cause

    def walk(self, frames: List[Line]) -> bool:
        """Append the frames; return False if a library was loaded on the way and the walk must be repeated."""
        frame: Optional[gdb.Frame] = gdb.newest_frame()
        while frame is not None:
            if time.monotonic() > self.until:
                raise Ended(OUT_OF_TIME, "late")
            pc = int(frame.pc())
            module, stale = self.libraries.load_for(pc)
            if stale:
                return False
            frames.append(self.describe(frame, pc, module))
            if len(frames) >= MAX_FRAMES:
                raise Ended(f"more than {MAX_FRAMES} frames: the older ones are left out", "many")
            older = frame.older()
            if older is None:
                complain(frame.unwind_stop_reason())
            frame = older
        return True

    def describe(self, frame: gdb.Frame, pc: int, module: Optional[str]) -> Line:
        """Return a frame as JSON."""
        name = function_of(frame)
        key = (pc, name, frame.type())
        if key not in self.lines:
            self.lines[key] = source_of(frame)
        file, line = self.lines[key]
        return {"function": name, "module": module, "address": pc, "file": file, "line": line}


class Ended(Exception):
    """An incomplete stack; the message gives the reason, ``cause`` its kind."""

    def __init__(self, message: str, cause: Optional[str] = None) -> None:
        super().__init__(message)
        self.cause = cause


def complain(reason: int) -> None:
    """Raise Ended unless a stack ended properly."""
    # gdb 13 documents FRAME_UNWIND_FIRST_ERROR without having it.
    if reason not in (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_NULL_ID, gdb.FRAME_UNWIND_OUTERMOST):
        memory = reason == getattr(gdb, "FRAME_UNWIND_MEMORY_ERROR", None)
        raise Ended(gdb.frame_stop_reason_string(reason), "memory" if memory else None)


def function_of(frame: gdb.Frame) -> Optional[str]:
    """Return a frame's function; None without a symbol."""
    if frame.type() == gdb.SIGTRAMP_FRAME:
        return "<signal handler called>"
    try:
        name = frame.name()
    except FAILURES:
        return None
    return clipped(name) if name else None


def source_of(frame: gdb.Frame) -> Tuple[Optional[str], Optional[int]]:
    """Return (file, line) of a frame; None each if unknown."""
    try:
        place = frame.find_sal()
        if place.symtab is None:
            return None, None
        return clipped(place.symtab.filename), place.line or None
    except FAILURES:
        return None, None


def clipped(text: str) -> str:
    """Limit the length of a text."""
    return text if len(text) <= MAX_NAME else text[:MAX_NAME] + "..."


class Output:
    """The file of JSON lines, limited in size."""

    def __init__(self, path: str) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self.file = os.fdopen(fd, "w", encoding="ascii")
        self.room = MAX_BYTES

    def put(self, value: Line) -> None:
        """Write a value as a line. Raises Stop."""
        text = json.dumps(value, separators=(",", ":")) + "\n"
        self.room -= len(text)
        if self.room < 0:
            raise Stop(f"its output grew past {MAX_BYTES} bytes")
        self.write(text)

    def write(self, text: str) -> None:
        """Write and flush a text."""
        self.file.write(text)
        self.file.flush()


def write_stack(thread: gdb.InferiorThread, walker: Walker, output: Output) -> bool:
    """Write the stack of one thread; return whether it is complete."""
    _pid, lwp, _tid = thread.ptid
    try:
        thread.switch()
        frames, error, cause = walker.stack()
    except FAILURES as exc:
        frames, error, cause = [], clipped(str(exc)), None
    output.put({"tid": lwp or _pid, "frames": frames, "error": error, "cause": cause})
    return error is None


def write_all(threads: Sequence[gdb.InferiorThread], files: Sequence[Mapped], output: Output, until: float) -> None:
    """Write the stacks of all threads. Raises Stop."""
    libraries = Libraries(files)
    walker = Walker(libraries, until)
    failed = []
    for thread in threads:
        if time.monotonic() > until:
            raise Stop(OUT_OF_TIME)
        if not write_stack(thread, walker, output):
            failed.append(thread)
    # A stack can break at a frame whose library was not loaded, before its pc was known.
    if failed and not libraries.all and time.monotonic() < until:
        libraries.load_all()
        for thread in failed:
            write_stack(thread, walker, output)


def write_core(path: str, files: Sequence[Mapped], until: float) -> None:
    """Write the stacks of the open core."""
    began = time.monotonic()
    output = Output(path)
    threads = sorted(gdb.selected_inferior().threads(), key=lambda thread: thread.num)
    output.put({"gdb": gdb.VERSION, "threads": len(threads)})
    stopped = None
    try:
        write_all(threads, files, output, until)
    except Stop as stop:
        stopped = str(stop)
    seconds = round(time.monotonic() - began, 4)
    output.write(json.dumps({"end": stopped is None, "seconds": seconds, "stopped": stopped}) + "\n")


def open_beside(exe: str, core: str) -> None:
    """Open another core beside those that are open; gdb then keeps what it has read of their files."""
    gdb.execute("add-inferior -no-connection", to_string=True)  # gdb 10; older ones open one core at a time
    gdb.execute("inferior " + str(max(inferior.num for inferior in gdb.inferiors())), to_string=True)
    gdb.execute("file " + exe, to_string=True)
    gdb.execute("core-file " + core, to_string=True)


def main() -> None:
    """Write the stacks of all cores."""
    until = float(os.environ["POSTMORTEM_STACKS_UNTIL"])
    write_core(os.environ["POSTMORTEM_STACKS"], json.loads(os.environ.get("POSTMORTEM_STACKS_FILES", "[]")), until)
    exe, further = json.loads(os.environ.get("POSTMORTEM_STACKS_NEXT", "[null, []]"))
    for core, output, files in further:
        if time.monotonic() > until:
            return
        try:
            open_beside(exe, core)
        except FAILURES:
            continue  # nothing is written for it, which the caller sees
        write_core(output, files, until)


main()
