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
        "it changed while it was read: the parts that were read may be inconsistent",
        "analyze a copy that no process writes to",
    ),
    "file-unusable": _words(None, "pass --sysroot, or copy the file from the machine that wrote the core"),
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
        "{file} is a different build from {program} in the core (build-ids differ)",
        "pass the same build with --exe, or its machine's files with --sysroot",
    ),
    "program-doubtful": _words(
        "the core does not show the build-id of {program}, so the file here may be a different build",
        "pass the same build with --exe, or its machine's files with --sysroot",
    ),
    "threads-lost": _words(
        "it lists {listed:n thread}, its notes are missing or cut off; {lost} more {lost:v is|are} known from the interpreter",
        "take a complete core (ulimit -c unlimited, free disk space)",
    ),
    "no-threads-listed": _words(
        "it lists no threads, as its notes are missing or cut off; {lost:n thread} {lost:v is|are} known from the interpreter",
        "take a complete core (ulimit -c unlimited, free disk space)",
    ),
    "no-threads": _words(
        "it lists no threads, as its notes are missing or cut off, so no stack can be shown",
        "take a complete core (ulimit -c unlimited, free disk space)",
    ),
    "container-files": _words(
        "it ran in a container ({container}), whose program and libraries are not those of this machine",
        "pass --sysroot with the container's files, or --exe",
    ),
    "origin-unverified": _words(
        "nothing shows that systemd-coredump wrote the journal's entry about it, and any user may write one: its program,"
        " unit, time and root are not taken from it",
        "see `journalctl -o verbose COREDUMP_PID=…` for who wrote it (_UID, _EXE, _SYSTEMD_UNIT)",
    ),
    "report-damaged": _words(None, "copy it again from the machine that wrote it"),
    "folder-refused": _words(
        "this user may not read {files:n file} there: {files:v it|one of them} may be a newer core", "run as root"
    ),
    "unpacked-short": _words(
        "only {megabytes} MB could be unpacked of this {codec} file: {why}",
        "copy it again from the machine that wrote it",
    ),
    # a capture and its bundle
    "capture-cut-short": _words(
        "it was cut short after step {step} of {of}, killed or out of space: the later steps are not in the bundle",
        "let the capture finish: it takes a few seconds",
    ),
    "capture-not-begun": _words(
        "it was cut short before its first step, killed or out of space: its steps are not in the bundle",
        "let the capture finish: it takes a few seconds",
    ),
    "step-failed": _words(None),
    "evidence-unusable": _words(
        "it is not usable: {why}",
        "copy the bundle again from its machine; this report is made from its raw facts and cores",
    ),
    "evidence-too-large": _words(
        "it is not usable: {why}",
        "set {setting}=1G if you trust it; this report is made from its raw facts and cores",
    ),
    "recorded-instead": _words(
        "read again with the files here, the cores show {lost}: this report uses the evidence recorded at the capture",
        "pass the program and libraries of the capture: --exe, or --sysroot with all that the cores map",
    ),
    "stripped": _words(
        "the cores were removed from this bundle, so {files} has no effect: this is the evidence recorded at the capture",
        "analyze the bundle from which `postmortem report --strip` made this one",
    ),
    "no-time-for-core": _words(
        "the time budget ran out before their cores were read: only /proc and py-spy describe them",
        "`postmortem analyze {place}` takes all the time it needs",
    ),
    # native stacks
    "no-native-stacks": _words(None),
    "gdb-incomplete": _words(None),
    "gdb-stopped": _words("gdb stopped after {seconds:.1f} s: {why}"),
    "gdb-damaged": _words("{lines:n line} of gdb's output {lines:v is|are} damaged"),
    "stack-incomplete": _words("it ends early: {why}"),
    "no-native-frame": _words("gdb found no frame", "`postmortem debug` shows the registers and memory around it"),
    "thread-unseen": _words(
        "gdb did not see this thread", "`postmortem debug` shows the registers and memory around it"
    ),
    "frames-guessed": _words("gdb has no unwind tables for it: these frames are guessed or left out"),
    "frames-guessed-unread": _words("{why}: these frames are guessed or left out"),
    "no-time-for-gdb": _words(
        "the time budget left none for gdb; their Python side is complete",
        "`postmortem analyze {place}` takes all the time it needs",
    ),
    # Python: interpreter, stacks, values, sources
    "no-interpreter": _words(None),
    "interpreter-unread": _words(None),
    "interpreter-ending": _words(
        "the interpreter is shutting down and no longer knows {threads:n thread}: whether {threads:v it|they} ran Python is lost",
        "capture it before it ends",
    ),
    "stack-cut": _words(None),
    "frames-unread": _words("{what: and } of {frames} frames: not in the core, or damaged"),
    "frames-left-out": _words("{frames} frames between the innermost {inner} and the outermost {outer} are left out"),
    "greenlets": _words(
        "it runs a greenlet: suspended greenlets, and the frames below this one, are not shown",
        "with gevent, gevent.util.print_run_info() shows all of them",
    ),
    "greenlets-unread": _words(None, "with gevent, gevent.util.print_run_info() shows all of them"),
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
        "they were removed from this bundle, and so were the cores",
        "analyze the bundle from which `postmortem report --strip` made this one",
    ),
    "sources-unread": _words("{file}{more:+ and @ more}: {why}"),
    "unassigned-samples": _words(
        "only its core shows which thread each of py-spy's stacks belongs to (Python 3.8 to 3.10)",
        "see the gap of its core",
    ),
    # waits and wakers
    "call-unread": _words(None, "pass --sysroot with the files of the core's machine"),
    "restarted-call": _words(
        "it was stopped before, and its code does not show which call the kernel restarts",
        "capture it before it is stopped",
    ),
    "restarted-calls": _words(
        "they were stopped before: only a core shows which calls the kernel restarts with restart_syscall",
        "capture it with a core",
    ),
    "semaphores-unread": _words(
        "the process has more memory than is searched: the holders of some semaphores stay unknown"
    ),
    "no-handler-table": _words(
        "the interpreter's table of them was not found", "take a core with every page (--core sparse)"
    ),
    "native-handlers": _words("C code handles {names}: what it then does cannot be read"),
    "references-uncounted": _words(
        "{what} counts {references:n reference}, of which {found} {found:v was|were} found",
        "a core with every page (--core sparse) shows more, unless C code is in the way",
    ),
    "references-unfound": _words(
        "{what} counts {references:n reference}, of which none was found",
        "a core with every page (--core sparse) shows more, unless C code is in the way",
    ),
    "references-overcounted": _words("more references to {what} were found than it counts: it was being changed"),
    "no-reference-count": _words("references to {what} are not counted"),
    "weak-reference-unread": _words("there is a weak reference to {what} that could not be read"),
    "no-object-lists": _words("a free-threaded interpreter keeps no lists of its objects"),
    "no-time-for-references": _words(
        "the {seconds:g} s allowed per process for this ran out",
        "install the extra `fast`, pip install 'postmortem[fast]': numpy searches ten times as fast",
    ),
    "too-many-referrers": _words("the references to it were followed over a few hundred objects, and there are more"),
    "referrers-too-deep": _words("the references to it were followed over {levels:n level}, and there are more"),
    "referrers-unread": _words(None),
    # crashes
    "no-siginfo": _words("the core has no siginfo", "let the kernel write the core (ulimit -c unlimited)"),
    "instruction-unread": _words(
        "the code at its address is not in the core, and its file is not here",
        "pass --sysroot with the files of the core's machine",
    ),
    "crash-stack-unknown": _words("its native stack is not known", "install gdb, and analyze it again"),
    "abort-message-unread": _words(None, "pass --sysroot with the files of the core's machine"),
    "fatal-error-unread": _words(
        "no debug information shows it, and it is not a constant in a file", "the program's stderr has it"
    ),
    "stack-bounds-unknown": _words("it runs on a stack that it made itself, or the core does not list its mappings"),
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
