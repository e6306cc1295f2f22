"""Facts of the evidence in words, a template a code; for the formats of slots see ``findings/texts``."""

from __future__ import annotations

from typing import Dict

from ...evidence.vocabulary import FactCode
from ...findings import Template

WORDS: Dict[FactCode, Template] = {
    "work-item-queued": Template("its work item is number {place} of {length} in the queue of {pool}"),
    "work-item-runs": Template("{worker} runs the work item whose future this is"),
    "pool-full": Template("{pool} has {workers} of {limit} workers, so it starts no more: {names}"),
    "with-manager": Template(
        "it is one of {count} that the manager thread of {pool} finishes when a worker has answered"
    ),
    "coroutine-queued": Template(
        "the callback that would begin the coroutine stands in the ready queue of the event loop"
    ),
    "coroutine-runs": Template("{task} runs the coroutine whose outcome the future is to have"),
    "set-by-shutdown": Template("only the thread that shuts the executor down sets it"),
    "workers-wait": Template("every worker of {pool} waits for a job (processes {processes}{more:+ …})"),
    "no-job-queued": Template("no job is queued: {thread} of the pool waits for one"),
    "no-job-sent": Template(
        "none is on its way to a worker: the read of process {pid} from the pipe of jobs blocks, so that is empty"
    ),
    "no-result-sent": Template(
        "no result is on its way back: the read of {thread} from the pipe of results blocks, so that is empty"
    ),
    "taker-ended": Template("a thread of process {pid} took it, and ended without giving it back"),
    "taker-ended-here": Template("a thread of this process took it {times} times and ended without giving it back"),
    "shared-taken": Template("its value in shared memory is 0: somebody has taken it, and has not given it back"),
    "shared-none-has": Template(
        "on this machine only {count:v process|processes} {processes}{more:+ and @ more} {count:v has|have} it in "
        "memory, and by the count that each keeps none has it"
    ),
    "shared-taker-gone": Template("so the process that took it has ended, or dropped it without giving it back"),
    "shared-mapped-by": Template(
        "on this machine only {count:v process|processes} {processes}{more:+ and @ more} {count:v has|have} it in "
        "memory"
    ),
    "shared-none-took": Template(
        "its value in shared memory is 0, and by the count that {count:v it|each of them} keeps nobody who lives "
        "has taken it"
    ),
    "shared-guards": Template(
        "whoever waits for it would give it back in the same function: it guards something, and is no signal"
    ),
    "left-behind-here": Template(
        "the control {count:v block|blocks} of {count:v a thread|@ threads} that had not come to an end, and "
        "{count:v does|do} not run in process {pid}, {count:v is|are} in its memory: fork has left {count:v "
        "it|them} behind"
    ),
    "forked-from": Template(
        "process {pid} was forked, without exec, from process {parent}: the random bytes that execve puts on a "
        "stack are the same in both"
    ),
    "left-behind": Template(
        "the control {count:v block|blocks} of {count:v a thread|@ threads} of process {parent} that {count:v "
        "does|do} not run in process {pid} {count:v is|are} in its memory: the parent had them when it forked"
    ),
    "records-no-thread-here": Template(
        "process {pid} does not have that thread: {threads:v its one thread is not|none of its @ threads is} the "
        "one that the lock records"
    ),
    "no-frame-holds": Template("no frame of the {threads} threads of process {pid} was found to hold it"),
    "only-thread-waits": Template(
        "process {pid} has one thread, the one that waits, and none of its frames has taken the lock"
    ),
    "records-one-left": Template("the lock records one of them"),
    "parent-unread": Template("that process was not read: who had it is not known"),
    "recorded-ended-in-parent": Template(
        "the thread that the lock records does not run in process {parent} any more, either"
    ),
    "recorded-in-parent": Template("the thread that the lock records is {thread} of process {parent}"),
    "same-address-held": Template("in process {parent} {thread} holds the lock of the same address, taken at {place}"),
    "same-address-free": Template(
        "no thread of process {parent} is known to have the lock of that address now; the copy would not be told"
    ),
    "permits-held": Template(
        "it has {limit} permits, and {held} `with` statements of these threads hold the {out} that are out"
    ),
    "records-ended-task": Template("{lock} records a task that has ended"),
    "stacks-hold-none": Template(
        "the stacks of all {threads} Python threads were read, and no `with` on them holds it"
    ),
    "stacks-took-none": Template(
        "no function on these stacks has acquired it by hand, or is yet to release it, as far as their source says"
    ),
    "tasks-hold-none": Template(
        "the coroutines of all {tasks} tasks were read, and no `async with` of theirs holds it"
    ),
    "tasks-took-none": Template("none of their functions has acquired it by hand, as far as their source says"),
    "mutex-owner-gone": Template("the mutex records thread {owner} as its owner, and the process has no such thread"),
    "alone-inside": Template(
        "it records no owner; thread {owner} is the only other one inside the function that waits for it"
    ),
    "readers-hold": Template("{readers} readers hold it, and it does not record which threads they are"),
    "kernel-lock": Template("the kernel's table of locks has it as {kind} {mode} of PID {pid}"),
    "held-through": Template("{process} holds it through its descriptor {fd}"),
    "taker-is-no-more": Template("{process} took it and is no more; the lock went on with the descriptor"),
    "taker-has-closed": Template("{process} took it and no longer has it open; the lock went on with the descriptor"),
    "pipe-moves": Template("it held {before} bytes before the capture stopped the program and {after} after: it moves"),
    "other-end": Template("{process} has its other end, as descriptor {fd}"),
    "end-held": Template("{process} holds its {end}, as descriptor {fd}{call:+; it is in @}{file:+ on @}"),
    "more-ends": Template("and {count} more descriptors are that end"),
    "named-file": Template("it has a name in the file system, by which any process may open it"),
    "hidden-holder": Template("the kernel says that somebody holds its {end}, and no process that may be seen does"),
    "holders-unrecorded": Template("which other processes hold it was not recorded"),
    "descriptors-unread": Template("the descriptors of {process} could not be read"),
    "descriptors-in-flight": Template(
        "descriptors are on their way through a socket, and may be one of them: whoever receives them has it"
    ),
    "machine-unsearched": Template("there was no time to look at the descriptors of all processes of the machine"),
    "younger-processes": Template("younger processes of other users might hold it, and may not be looked into"),
    "given-by-others": Template("it was given to the program by others, who may not be looked into"),
    "all-searched": Template("the descriptors of {count} processes, all that could hold it, were looked through"),
    "child-ends-it": Template("only the end of a child ends a wait for it"),
    "only-waiters-refer": Template(
        "only those who wait for it{who:+, and }{who: and }{more:+ and @ more}{who:+,} refer to {resource}: all "
        "{references} references to it, and to what leads to it, are accounted for"
    ),
    "has-a-way": Template("{who} has a way to it: {way: → }"),
    "referred-to": Template("{object} is referred to {times:v once|@ times}: {by}{more:+ and @ more}"),
    "unreferred": Template("{object} is referred to {times:v once|@ times}: by nobody"),
    # what agents wait for, and what else may end a wait
    "until-continued": Template("until it is continued"),
    "whoever-stopped-it": Template("whoever stopped it"),
    "selector-timeout": Template("the timeout of its selector"),
    "timer": Template("a timer"),
    "perhaps-timer": Template("perhaps a timer"),
    "watched-descriptors": Template("{count} watched descriptors"),
    "perhaps-descriptor": Template("perhaps a descriptor that it watches"),
    "ready-callbacks": Template("{count} callbacks that are ready"),
    "handled-signal": Template("a signal that it handles"),
    "idle-loop": Template("an event loop with nothing to do"),
    "one-thread-moves": Template("one of its threads moves"),
    "status-uncollected": Template("nobody has collected its status"),
    "process-not-captured": Template("process {pid}, which was not captured"),
    "child-not-captured": Template("a child that was not captured"),
    "any-child": Template("any of its children"),
    "some-call": Template("something ({call})"),
    "something": Template("something"),
    "gil": Template("the GIL"),
    "loop-runner": Template("somebody who runs its event loop"),
    "loop-of-thread": Template("the event loop of {thread}"),
    "awaits-unknown": Template("what it awaits is unknown"),
    "tasks": Template("task {names}{more:+ …}"),
    "tasks-of": Template("{what} (task {names}{more:+ …})"),
    "native-code": Template("native code"),
}
