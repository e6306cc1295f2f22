"""Waits for input that does not come.

**What it looks like.** The main thread reads descriptor 0, without a timeout: a terminal, or a pipe whose writer itself waits
for a person. Often it is a question (`input()`, `getpass`, a debugger's prompt) that was not expected there.

**Easily mistaken for** `pipe-never-closed`, where the end of file does not come; a worker or a language server, which
reads its orders from a parent that is still alive.

**Why it hangs.** No answer comes: the program runs in CI, under a service manager or in a pipeline, or the question is hidden
in captured output.

**Remedy.** Provide its input (`< /dev/null` makes it end at once), ask only `if sys.stdin.isatty()`, and take answers from
options.
"""

from __future__ import annotations

import re
from typing import Iterator, List, Optional, Union

from ....evidence import Process, PythonFrame, Resource
from ....findings import Template, Text
from ....findings.found import Said
from ....waitgraph import Agent
from ...facts import clauses
from ...facts.knowledge import in_table, own_frame
from ...facts.view import View
from ...pattern import Answer, Match, No, Pattern
from .pipes import WRITES, Waiter, behind, holders, read_ends, waiters, waiters_of_unknown

PATTERN = Pattern(
    id="stdin-wait",
    tier="computation",
    title="waits for input that does not come",
    explanation="The program reads its standard input, and the person or program that should write to it does not.",
    remedy=(
        "Start it with its input, or with `< /dev/null`; ask only when sys.stdin.isatty(), and take the answer from an "
        "option or the environment otherwise. A forgotten breakpoint() waits like this, too."
    ),
    references=("https://docs.python.org/3/library/functions.html#input",),
)

#: Standard input without recorded details.
_UNKNOWN = Resource("stdin", "file", "stdin (only a capture of the running process shows what it was)")
#: A person at a front end, who is asked through messages.
_FRONT_END = Resource("front-end", "terminal", "the front end of the notebook or console", state="foreground")
_ASKS_FRONT_END = (("ipykernel/kernelbase.py", "_input_request"),)
#: The state of a pipe whose only writers themselves read a terminal.
_WRITER_ASKS = "writer reads a terminal"
_QUESTION = re.compile(r"\b(input|getpass|raw_input|prompt|confirm|breakpoint)\s*\(")
_ASKS = (
    ("/pdb.py", "cmdloop"),
    ("/pdb.py", "_cmdloop"),
    ("/cmd.py", "cmdloop"),
    ("/getpass.py", "unix_getpass"),
    ("/code.py", "interact"),
)

_TALKS = (("/code.py", "interact"), ("/cmd.py", "cmdloop"))

_SUMMARY = Template("{reader} waits{at} for input that does not come, from {stdin}")
_READS = Template("{reader} reads its input{at}: {stdin}")
_ASKS_PERSON = Template("it asks a person: {call}")
_WORKER = Template("a worker or a language server that takes orders from another program looks like this when idle")
_AT_TERMINAL = Template("a person may sit at that terminal")
_CONSOLE = Template("it is an interactive console, in which a person may be typing")
_SENT = Template("{reader} reads what another process of the tree sends: {stdin}")
_INHERITED = Template("{child} has the standard input of its parent {parent}, which waits for it")
_GIVE_NONE = Template(
    "Start the child with an input of its own: stdin=subprocess.DEVNULL makes its questions end at once. Tell it by an "
    "option not to ask (-y, --yes, --batch)."
)
_FILTER = Template("{reader} reads a pipe, as filter programs do: {stdin}")


def match(view: View) -> Iterator[Answer]:
    """Yield an answer for each thread or task that reads standard input or a terminal."""
    for process in view.processes:
        unrecorded = [w for w in waiters_of_unknown(view, process, _UNKNOWN) if _reads_stdin(w)]
        for waiter in (*waiters(view, process), *unrecorded):
            stdin = waiter.resource if waiter.resource is _UNKNOWN else _stdin(waiter)
            if stdin is None:
                continue
            senders = {other.pid for other in holders(view, stdin) if other.pid in view.by_pid}
            # a process that waits for this one does not answer it
            waits = stdin.kind == "terminal" and behind(view, process)
            gave_none = behind(view, process) if _is_inherited(view, process, stdin) else None
            sends = bool(senders & {process.pid, *view.ancestors(process)}) and not waits
            asked = sends and _asks(view, waiter, own_frame(waiter.frames))
            if sends and not (
                asked and (view.graph.stuck(waiter.agent) or all(_only_reads(view, pid) for pid in senders))
            ):
                yield No(_SENT(reader=waiter.who, stdin=stdin.description))
            elif stdin.kind == "pipe" and gave_none is not None and not _writers_ask(view, stdin):
                yield _of_child(view, waiter, stdin, gave_none)
            elif stdin.kind == "pipe" and own_frame(waiter.frames) is None and not _writers_ask(view, stdin):
                yield No(_FILTER(reader=waiter.who, stdin=stdin.description))
            elif not view.idle(waiter.thread):
                yield _match(view, waiter, stdin)
        for thread in process.threads:
            if any(in_table(frame, _ASKS_FRONT_END) for frame in thread.python[:4]):
                yield _match(view, Waiter(process, thread, None, _FRONT_END), _FRONT_END)


def _only_reads(view: View, pid: int) -> bool:
    """Return whether a process answers nothing: its Python threads are blocked in a read, or only sleep and count."""
    threads = [(thread, thread.wait) for thread in view.by_pid[pid].threads if thread.python and not thread.quiet]
    return bool(threads) and all(w and w.syscall == "read" and w.endless and not view.moves(t) for t, w in threads)


def _reads_stdin(waiter: Waiter) -> bool:
    """Return whether a waiter of a lone core reads descriptor 0 from a line of the program."""
    wait, frame = waiter.thread.wait, own_frame(waiter.frames)
    return wait is not None and wait.fd == 0 and wait.syscall == "read" and frame is not None


def _stdin(waiter: Waiter) -> Optional[Resource]:
    """Return the terminal or standard input that the waiter reads; None for other waits."""
    wait, resource = waiter.thread.wait, waiter.resource
    if resource.kind == "terminal" and (waiter.task is not None or (wait is not None and wait.syscall not in WRITES)):
        return resource  # includes /dev/tty, where getpass asks
    own = any(end.pid == waiter.process.pid and end.fd == 0 for end in resource.ends)
    return next(iter(read_ends(waiter)), None) if own else None


def _match(view: View, waiter: Waiter, stdin: Resource) -> Match:
    process, who = waiter.process, waiter.who
    frame = own_frame(waiter.frames)
    at = clauses.at(frame)
    facts: List[Said] = [_READS(reader=who, at=at, stdin=stdin.description), *stdin.because]
    asks, idle, attended = _asks(view, waiter, frame), _writers_ask(view, stdin), _attended(view, waiter, stdin)
    if asks:
        facts.append(_ASKS_PERSON(call=asks))
    elif stdin.kind != "terminal" and not idle:
        facts.append(_WORKER())
    facts += [attended] if attended else []
    stuck = view.graph.stuck(waiter.agent) if stdin.kind == "pipe" and asks else None
    facts += view.graph.reasons(waiter.agent) if stuck == "proven" else ()
    sure = not attended and (bool(asks) or stdin.kind == "terminal" or idle)
    matters = frame is not None and view.matters(process, waiter.thread)
    return Match(
        confidence="proven" if stuck == "proven" else "likely" if sure and matters else "possible",
        summary=_SUMMARY(reader=who, at=at, stdin=stdin.description),
        evidence=tuple(dict.fromkeys(facts)),
        culprits=waiter.culprits(view),
        victims=tuple(view.victim(process, t) for t in view.waits_on(process, waiter.thread.tid)),
        pid=process.pid,
    )


def _is_inherited(view: View, process: Process, stdin: Resource) -> bool:
    """Return whether a child has the standard input of the command itself: its parent gave it none of its own."""
    return process.ppid in view.by_pid and any(end.pid == process.ppid and end.fd == 0 for end in stdin.ends)


def _of_child(view: View, waiter: Waiter, stdin: Resource, parent: Waiter) -> Match:
    """Return the match of a child that reads the command's own input, beside the parent that waits for it."""
    frame = own_frame(waiter.frames)
    at = clauses.at(frame)
    held_up = view.evidence.trigger.kind != "pid" and view.matters(parent.process, parent.thread)
    return Match(
        confidence="likely" if held_up and view.graph.is_awaited(Agent(waiter.process.pid)) else "possible",
        summary=_SUMMARY(reader=waiter.who, at=at, stdin=stdin.description),
        evidence=(
            _READS(reader=waiter.who, at=at, stdin=stdin.description),
            _INHERITED(child=clauses.process(waiter.process), parent=clauses.process(parent.process)),
            *stdin.because,
        ),
        culprits=(*parent.culprits(view), *(waiter.culprits(view) if frame is not None else ())),
        victims=(view.victim(parent.process, parent.thread),),
        remedy=_GIVE_NONE(),
        pid=waiter.process.pid,
    )


def _attended(view: View, waiter: Waiter, stdin: Resource) -> Optional[Text]:
    """Return why a person may be there to answer, if the capture was not triggered by a deadline; else None."""
    if view.evidence.trigger.kind != "pid":
        return None
    if stdin.kind == "terminal" and stdin.state == "foreground":
        return _AT_TERMINAL()
    frames = waiter.frames[:6]
    talks = any(f.file.endswith(file) and f.function == function for f in frames for file, function in _TALKS)
    if talks and not any(f.file.endswith("/pdb.py") for f in frames):  # pdb is an exception: it was left behind
        return _CONSOLE()
    return None


def _writers_ask(view: View, stdin: Resource) -> bool:
    """Return whether the possible writers themselves wait for a person (``cat | program``)."""
    mains = [view.main(view.by_pid[other.pid]) for other in holders(view, stdin) if other.pid in view.by_pid]
    waits = [main.wait if main is not None else None for main in mains]
    asking = (w is not None and w.fd == 0 and w.syscall == "read" and w.kind == "file" for w in waits)
    return stdin.state == _WRITER_ASKS or (bool(waits) and all(asking))


def _asks(view: View, waiter: Waiter, frame: Optional[PythonFrame]) -> Union[str, PythonFrame, None]:
    """Return the call that asks a person: in the line itself, or a library function for that purpose; else None."""
    calling = waiter.thread.calling if waiter.task is None else None
    if calling is not None and calling.function.rpartition(".")[2] == "input":
        return "input()"
    for found in waiter.frames[:6]:
        if any(found.file.endswith(file) and found.function == function for file, function in _ASKS):
            return found
    source = view.evidence.source(frame.file, frame.line) if frame is not None else None
    if frame is not None and frame.file == "<string>" and "-c" in waiter.process.argv[:-1]:
        text = waiter.process.argv[waiter.process.argv.index("-c") + 1].split("\n")
        source = text[frame.line - 1] if 0 < (frame.line or 0) <= len(text) else None  # type: ignore[operator]
    asked = _QUESTION.search(source or "")
    return asked[1] + "()" if asked else None
