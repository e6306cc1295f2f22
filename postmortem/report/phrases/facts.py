"""Facts of the evidence in words, a template a code; for the formats of slots see ``findings/texts``."""

from __future__ import annotations

from typing import Dict

from ...evidence.vocabulary import FactCode
from ...findings import Template

WORDS: Dict[FactCode, Template] = {
    "work-item-queued": Template("its work item is number {place} of {length} in the queue of {pool}"),
    "job-queued": Template(
        "{count:n job} in the queue of {pool} {count:v leads|lead} to {resource}, and only a worker of that pool can run "
        "{count:v it|them}"
    ),
    "work-item-runs": Template("{worker} runs the work item whose future this is"),
    "pool-full": Template("{pool} has {workers} of {limit} workers, so it starts no more: {names}"),
    "with-manager": Template(
        "it is {count:v the only future|one of @ futures} that the manager thread of {pool} completes when a worker "
        "answers"
    ),
    "coroutine-queued": Template("the callback that starts the coroutine is in the ready queue of the event loop"),
    "coroutine-runs": Template("{task} runs the coroutine whose outcome goes to this future"),
    "call-runs": Template("{task} runs the call whose outcome the thread waits for"),
    "call-queued": Template("the call is in the queue of trio's loop, which has not begun it"),
    "function-runs": Template("{worker} runs the function whose outcome the task waits for"),
    "set-by-shutdown": Template("only the thread that shuts the executor down sets it"),
    "workers-wait": Template("every worker of {pool} waits for a job (processes {processes}{more:+ …})"),
    "no-job-queued": Template("no job is queued: {thread} of the pool waits for one"),
    "no-job-sent": Template(
        "no job is on its way to a worker: process {pid} blocks reading the job pipe, so the pipe is empty"
    ),
    "no-result-sent": Template(
        "no result is on its way back: {thread} blocks reading the result pipe, so the pipe is empty"
    ),
    "results-thread-ended": Template(
        "the thread of the {pool} in which results arrive and callbacks run (_handle_results) has ended: no result arrives "
        "any more"
    ),
    "taker-ended": Template("a thread of process {pid} acquired it and ended without releasing it"),
    "taker-ended-here": Template(
        "a thread of this process acquired it {times:v once|@ times} and ended without releasing it"
    ),
    "shared-taken": Template("its value in shared memory is 0: it has been acquired and not released"),
    "shared-none-has": Template(
        "on this machine only {count:v process|processes} {processes}{more:+ and @ more} {count:v maps|map} it, and by "
        "{count:v its own count does not hold it|their own counts none of them holds it}"
    ),
    "shared-taker-gone": Template("so the process that acquired it has ended, or has dropped it without releasing it"),
    "shared-mapped-by": Template(
        "on this machine only {count:v process|processes} {processes}{more:+ and @ more} {count:v maps|map} it"
    ),
    "shared-none-took": Template(
        "its value in shared memory is 0, and by {count:v its own count that process has not|their own counts none "
        "of those processes has} acquired it"
    ),
    "shared-guards": Template(
        "each waiter would release it in the function that acquires it: it guards something and is not a signal"
    ),
    "left-behind-here": Template(
        "the memory of process {pid} has the control {count:v block|blocks} of {count:v a thread|@ threads} that had "
        "not ended but {count:v does|do} not run there: fork left {count:v it|them} behind"
    ),
    "forked-from": Template(
        "process {pid} was forked, without exec, from process {parent}: the random bytes that execve puts on a "
        "stack are the same in both"
    ),
    "left-behind": Template(
        "the memory of process {pid} has the control {count:v block|blocks} of {count:v a thread|@ threads} of process "
        "{parent} that {count:v does|do} not run in process {pid}: the parent had {count:v it|them} when it forked"
    ),
    "records-no-thread-here": Template(
        "process {pid} does not have that thread: {threads:v its only thread is not|none of its @ threads is} the "
        "one that the lock records"
    ),
    "no-frame-holds": Template("no frame of the {threads:n thread} of process {pid} was found to hold it"),
    "only-thread-waits": Template(
        "process {pid} has only one thread, the one that waits, and none of its frames has acquired the lock"
    ),
    "records-one-left": Template("the lock records one of them as its holder"),
    "parent-unread": Template("that process was not read, so the thread that held the lock is not known"),
    "recorded-ended-in-parent": Template("the thread that the lock records no longer runs in process {parent} either"),
    "recorded-in-parent": Template("the thread that the lock records is {thread} of process {parent}"),
    "same-address-held": Template(
        "in process {parent}, {thread} holds the lock at the same address, acquired at {place}"
    ),
    "same-address-free": Template(
        "no thread of process {parent} is known to hold the lock at that address now; a release there does not reach "
        "this copy"
    ),
    "permits-held": Template(
        "it has {limit:n permit}, and {held:n `with` statement} of these threads {held:v holds|hold} the {out} in use"
    ),
    "parts-held": Template("it lends {limit} at most, and the holders of all {held} in use were found"),
    "records-ended-task": Template("{lock} records a task that has ended"),
    "stacks-hold-none": Template(
        "{threads:v the stack of the only Python thread was|the stacks of all @ Python threads were} read, and no "
        "`with` statement on {threads:v it|them} holds it"
    ),
    "stacks-took-none": Template(
        "as far as the source shows, no function on these stacks has acquired it by an explicit call or has yet to "
        "release it"
    ),
    "tasks-hold-none": Template(
        "{tasks:v the coroutine of the only task was|the coroutines of all @ tasks were} read, and no `async with` "
        "statement in {tasks:v it|them} holds it"
    ),
    "tasks-took-none": Template(
        "as far as the source shows, none of their functions has acquired it by an explicit call"
    ),
    "mutex-owner-gone": Template("the mutex records thread {owner} as its owner, and the process has no such thread"),
    "shared-lock-records": Template(
        "the lock lies in memory that processes share, and records thread {owner} of process {pid} as its holder"
    ),
    "alone-inside": Template(
        "it records no owner; thread {owner} is the only other thread inside the function that waits for it"
    ),
    "alone-inside-library": Template(
        "it records no owner; thread {owner} is the only other thread inside the library that wants it"
    ),
    "alone-runs-loop": Template(
        "the thread of the library's event loop makes the call; thread {owner} is the only other one inside that library"
    ),
    "readers-hold": Template(
        "{readers:n reader} {readers:v holds|hold} it, and it does not record which "
        "{readers:v thread that is|threads they are}"
    ),
    "kernel-lock": Template("the kernel's lock table lists it as {kind} {mode} of PID {pid}"),
    "held-through": Template("{process} holds it through its descriptor {fd}"),
    "taker-is-no-more": Template("{process} acquired it and has ended; the lock lives on with the descriptor"),
    "taker-has-closed": Template(
        "{process} acquired it and no longer has it open; the lock lives on with the descriptor"
    ),
    "pipe-moves": Template(
        "it held {before:n byte} before the capture stopped the program and {after:n byte} after: data moves through it"
    ),
    "other-end": Template("{process} has its other end, as descriptor {fd}"),
    "end-held": Template("{process} holds its {end}, as descriptor {fd}{call:+; it is in @}{file:+ on @}"),
    "more-ends": Template("and {count:n more descriptor} {count:v refers|refer} to that end"),
    "named-file": Template("it has a name in the file system, so any process may open it"),
    "hidden-holder": Template("the kernel says that its {end} is held, but no process visible to postmortem holds it"),
    "holders-unrecorded": Template("which other processes hold it was not recorded"),
    "descriptors-unread": Template("the descriptors of {process} could not be read"),
    "descriptors-in-flight": Template(
        "descriptors in transit through a socket may include it: the process that receives them has it"
    ),
    "machine-unsearched": Template("there was no time to check the descriptors of every process on the machine"),
    "younger-processes": Template(
        "newer processes of other users might hold it, and there was no permission to inspect them"
    ),
    "given-by-others": Template("the program got it from other processes, and there was no permission to inspect them"),
    "all-searched": Template(
        "the descriptors of {count:v the only process|all @ processes} that could hold it were checked"
    ),
    "child-ends-it": Template("only the exit of a child process ends a wait for it"),
    "only-waiters-refer": Template(
        "only the waiters{who:+ and }{who: and }{more:+ and @ more} refer to {resource}: {references:v the one "
        "reference|all @ references} to it, or to an object that leads to it, {references:v is|are} accounted for"
    ),
    "only-waiters-and-jobs-refer": Template(
        "only the waiters and jobs in that queue{who:+ and }{who: and }{more:+ and @ more} refer to {resource}: {references:v "
        "the one reference|all @ references} to it, or to an object that leads to it, {references:v is|are} accounted for"
    ),
    "has-a-way": Template("{who} can reach it: {way: → }"),
    "referred-to": Template("{object} is referenced {times:v once|@ times}: {by}{more:+ and @ more}"),
    "unreferred": Template("{object} is referenced {times:v once|@ times}, but by nothing that could use it"),
    # what agents wait for, and what else may end a wait
    "until-continued": Template("until it is continued"),
    "stopper": Template("whatever stopped it"),
    "selector-timeout": Template("the timeout of its selector"),
    "timer": Template("a timer"),
    "perhaps-timer": Template("perhaps a timer"),
    "watched-descriptors": Template("{count} watched descriptors"),
    "perhaps-descriptor": Template("perhaps a descriptor that it watches"),
    "ready-callbacks": Template("{count} callbacks that are ready"),
    "handled-signal": Template("a signal that it handles"),
    "idle-loop": Template("an event loop with nothing to do"),
    "one-thread-moves": Template("one of its threads makes progress"),
    "status-uncollected": Template("and its parent has not collected its exit status"),
    "process-not-captured": Template("process {pid}, which was not captured"),
    "child-not-captured": Template("a child that was not captured"),
    "any-child": Template("any of its children"),
    "some-call": Template("something ({call})"),
    "something": Template("something"),
    "gil": Template("the GIL"),
    "loop-runner": Template("a thread that runs its event loop"),
    "loop-of-thread": Template("the event loop of {thread}"),
    "awaits-unknown": Template("what it awaits is unknown"),
    "tasks": Template("task {names}{more:+ …}"),
    "tasks-of": Template("{what} (task {names}{more:+ …})"),
    "native-code": Template("native code"),
}
