"""Gaps in words: why a fact could not be read, and what helps next time.

A gap that results from an error, or from a complaint of gdb or of a reader of memory, carries that text as its
``reason``. For the formats of slots see ``findings/texts``.
"""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Optional

from ...evidence import Gap, replace
from ...evidence.facts import Value
from ...evidence.vocabulary import GapCode
from ...findings import Template
from .wording import filled


class _Words(NamedTuple):
    reason: Optional[Template]  # None: the gap has the text of an error
    remedy: Optional[Template] = None


def _words(reason: Optional[str], remedy: Optional[str] = None) -> _Words:
    return _Words(Template(reason) if reason else None, Template(remedy) if remedy else None)


WORDS: Dict[GapCode, _Words] = {
    # a core, its program and its files
    "core-cut-short": _words(
        "the file ends before its segments do: it was cut short",
        "raise the limit on core size (ulimit -c unlimited) or free disk space",
    ),
    "core-cut-by-systemd": _words(
        "cut short by systemd: it was larger than ProcessSizeMax, ExternalSizeMax or JournalSizeMax",
        "raise these in /etc/systemd/coredump.conf before it crashes again",
    ),
    "core-unread": _words(None),
    "file-changed": _words(
        "it was changed while it was read: what was read of it may not fit together",
        "analyze a copy that nobody writes to",
    ),
    "file-unusable": _words(None, "pass --sysroot, or copy the file of the machine that wrote the core"),
    "no-program": _words("the main program is not known, and gdb finds few frames without it", "pass --exe"),
    "program-unnamed": _words(
        "the core does not say which file was the main program",
        "pass the same build with --exe, or its machine's files with --sysroot",
    ),
    "program-loaded": _words(
        "the program was started through {loader}, so the core does not name it",
        "pass the same build with --exe, or its machine's files with --sysroot",
    ),
    "program-unusable": _words(
        "{program}: {why}", "pass the same build with --exe, or its machine's files with --sysroot"
    ),
    "wrong-program": _words(
        "{file} is another build than {program} in the core (build-ids differ)",
        "pass the same build with --exe, or its machine's files with --sysroot",
    ),
    "program-doubtful": _words(
        "the core does not show the build-id of {program}, so it may be another build than the file here",
        "pass the same build with --exe, or its machine's files with --sysroot",
    ),
    "threads-lost": _words(
        "it lists {listed} threads, its notes are missing or cut off: {lost} more are known from the interpreter",
        "take a core that is not cut short (ulimit -c unlimited, room on the disk)",
    ),
    "no-threads-listed": _words(
        "it lists no threads, its notes are missing or cut off: {lost} more are known from the interpreter",
        "take a core that is not cut short (ulimit -c unlimited, room on the disk)",
    ),
    "no-threads": _words(
        "it lists no threads, its notes are missing or cut off: so no stack can be shown",
        "take a core that is not cut short (ulimit -c unlimited, room on the disk)",
    ),
    "container-files": _words(
        "it ran in a container ({container}), whose program and libraries are not those of this machine",
        "pass --sysroot with the container's files, or --exe",
    ),
    "origin-unverified": _words(
        "nothing shows that systemd-coredump wrote the journal's entry about it, and any user may write one: its program,"
        " unit, time and root are not taken from there",
        "look at `journalctl -o verbose COREDUMP_PID=…` for who wrote it (_UID, _EXE, _SYSTEMD_UNIT)",
    ),
    "report-damaged": _words(None, "copy it again from the machine that wrote it"),
    "folder-refused": _words(
        "{files} files there may not be read by this user: one may be a newer core", "run as root"
    ),
    "unpacked-short": _words(
        "only {megabytes} MB could be unpacked of this {codec} file: {why}",
        "copy it again from the machine that wrote it",
    ),
    # a capture and its bundle
    "capture-cut-short": _words(
        "it was cut short after its step {step} of {of}, killed or for want of room: what comes later is not in the bundle",
        "let the capture finish: it takes a few seconds",
    ),
    "capture-not-begun": _words(
        "it was cut short before its first step, killed or for want of room: what comes later is not in the bundle",
        "let the capture finish: it takes a few seconds",
    ),
    "step-failed": _words(None),
    "evidence-unusable": _words(
        "it is not usable: {why}",
        "copy the bundle again from its machine; this report is made of its raw facts and cores",
    ),
    "evidence-too-large": _words(
        "it is not usable: {why}",
        "{setting}=1G if you trust it; this report is made of its raw facts and cores",
    ),
    "recorded-instead": _words(
        "read anew with what is here, the cores show {lost}: this is the evidence recorded at the capture",
        "pass the program and libraries of the capture: --exe, or --sysroot with all that the cores map",
    ),
    "stripped": _words(
        "cores were taken out of this bundle, so {files} is of no use: this is the evidence recorded at the capture",
        "analyze the bundle from which `postmortem report --strip` made this one",
    ),
    "no-time-for-core": _words(
        "the budget was used up before their cores were read: /proc and py-spy alone speak of them",
        "`postmortem analyze {place}` takes all the time that it needs",
    ),
    # native stacks
    "no-native-stacks": _words(None),
    "gdb-incomplete": _words(None),
    "gdb-stopped": _words("gdb stopped after {seconds:.1f} s: {why}"),
    "gdb-damaged": _words("{lines} lines of gdb's output are damaged"),
    "stack-incomplete": _words("it ends early: {why}"),
    "no-native-frame": _words("gdb found no frame", "`postmortem debug` shows the registers and memory around it"),
    "thread-unseen": _words(
        "gdb did not see this thread", "`postmortem debug` shows the registers and memory around it"
    ),
    "frames-guessed": _words("gdb has no unwind tables for it: they are guessed or left out"),
    "frames-guessed-unread": _words("{why}: they are guessed or left out"),
    "no-time-for-gdb": _words(
        "the budget left no time for gdb; their Python side is complete",
        "`postmortem analyze {place}` takes all the time that it needs",
    ),
    # Python: interpreter, stacks, values, sources
    "no-interpreter": _words(None),
    "interpreter-unread": _words(None),
    "interpreter-ending": _words(
        "the interpreter is ending and knows {threads} threads no longer: whether they ran Python is lost",
        "capture it before it ends",
    ),
    "stack-cut": _words(None),
    "frames-unread": _words("{what: and } of {frames} frames: not in the core, or damaged"),
    "frames-left-out": _words("{frames} frames between the innermost {inner} and the outermost {outer} are left out"),
    "greenlets": _words(
        "it runs a greenlet: those that are suspended, and what stands below this one, are not shown",
        "with gevent, gevent.util.print_run_info() shows all of them",
    ),
    "tasks-unread": _words(None),
    "locals-unread": _words(None),
    "locals-left-out": _words(
        "more than {most:,} of them, or {seconds:g} s of reading; those of older frames are left out"
    ),
    "no-locals": _words(
        "the cores, or the programs and libraries that they map, are not here; the recorded evidence has no locals",
        "analyze --locals where the program ran, or with --sysroot, or capture with --locals",
    ),
    "no-locals-in-report": _words(
        "`report` reads no cores; the recorded evidence has no locals",
        "analyze --locals where the program ran, or with --sysroot, or capture with --locals",
    ),
    "locals-stripped": _words(
        "they were taken out of this bundle, and so were the cores",
        "analyze the bundle from which `postmortem report --strip` made this one",
    ),
    "sources-unread": _words("{file}{more:+ and @ more}: {why}"),
    "unassigned-samples": _words(
        "only its core tells which thread each of py-spy's stacks belongs to (Python 3.8 to 3.10)",
        "see the gap of its core",
    ),
    # waits and wakers
    "call-unread": _words(None, "pass --sysroot with the files of the core's machine"),
    "restarted-call": _words(
        "it was stopped before, and which call the kernel restarts is not in the code that made it",
        "capture it before anybody stops it",
    ),
    "restarted-calls": _words(
        "they were stopped before: only a core tells which calls the kernel restarts with restart_syscall",
        "capture it with a core",
    ),
    "semaphores-unread": _words(
        "the process has more memory than is looked through: some semaphores' holders stay unknown"
    ),
    "no-handler-table": _words(
        "the interpreter's table of them was not found", "take a core with every page (--core sparse)"
    ),
    "native-handlers": _words("C code catches {names}: what it does then cannot be read"),
    "references-uncounted": _words(
        "{what} counts {references:n reference}, of which {found} {found:v was|were} found",
        "a core with every page (--core sparse) tells more, as long as no C code is in the way",
    ),
    "references-unfound": _words(
        "{what} counts {references:n reference}, of which none was found",
        "a core with every page (--core sparse) tells more, as long as no C code is in the way",
    ),
    "references-overcounted": _words("more references to {what} were found than it counts: it was being changed"),
    "no-reference-count": _words("references to {what} are not counted"),
    "weak-reference-unread": _words("there is a weak reference to {what} that could not be read"),
    "no-object-lists": _words("a free-threaded interpreter keeps no lists of its objects"),
    "no-time-for-references": _words("the {seconds:g} s that a process gets for this were over"),
    "too-many-referrers": _words("what refers to it was followed over a few hundred objects, and goes on"),
    "referrers-too-deep": _words("what refers to it was followed over {levels} levels, and goes on"),
    "referrers-unread": _words(None),
    # crashes
    "no-siginfo": _words("the core has no siginfo", "let the kernel write the core (ulimit -c unlimited)"),
    "instruction-unread": _words(
        "the code at its address is not in the core, and its file not here",
        "pass --sysroot with the files of the core's machine",
    ),
    "crash-stack-unknown": _words("its native stack is not known", "install gdb, and analyze it again"),
    "abort-message-unread": _words(None, "pass --sysroot with the files of the core's machine"),
    "fatal-error-unread": _words(
        "no debug information tells it, and it is no constant of a file", "the program's stderr has it"
    ),
    "stack-bounds-unknown": _words("it runs on a stack of its own making, or the core does not list its mappings"),
}


def in_words(gap: Gap) -> Gap:
    """Return a gap with its reason and, if anything is known to help, its remedy in words."""
    words = WORDS[gap.code] if gap.code is not None else _NONE
    return replace(
        gap,
        reason=_told(gap.reason, words.reason, gap.slots) or "the reason was not recorded",
        remedy=_told(gap.remedy, words.remedy, gap.slots) or None,
    )


_NONE = _Words(None)


def _told(text: Optional[str], words: Optional[Template], slots: Mapping[str, Value]) -> Optional[str]:
    """Return the text of the error that the gap results from, with the file that it is about; else the template's words."""
    if text is None:
        return filled(words, slots) if words is not None else None
    return text.replace("{path}", str(slots["path"])) if "path" in slots else text
