"""The passes over a process that need no native stack; gdb unwinds meanwhile."""

from __future__ import annotations

from typing import List, NamedTuple, Optional

from ..cross_process.semaphores import SemaphoreHoldings
from ..cross_process.sharedwork import SharedWork
from ..ownership.pools import Pools
from ..ownership.threadholders import find_holders
from ..waits.buffered import BufferBook
from ..waits.cancellations import with_cancellations
from ..waits.endpoints import DescriptorBook
from ..waits.locks import LockBook, LockWaits
from ..waits.polling import Polling
from ..waits.pollingtasks import polling_tasks
from ..waits.tasks import TasksRead, read_tasks
from .context import ProcessContext, PythonContext
from .gatebook import GateBook, find_gates
from .stacks import Stacks
from .threads import ThreadsRead, read_threads
from .variables import Variables
from .waiting import Books


class PythonSide(NamedTuple):
    """Results of the passes over an interpreter."""

    context: PythonContext
    tasks: TasksRead
    pools: Pools
    waits: LockWaits
    locks: LockBook
    shared: SharedWork
    semaphores: SemaphoreHoldings
    buffers: BufferBook
    gates: GateBook


class Reading(NamedTuple):
    """Results of all passes; ``side`` is None without an interpreter."""

    context: ProcessContext
    stacks: Stacks
    descriptors: DescriptorBook
    threads: ThreadsRead
    side: Optional[PythonSide]

    @property
    def files(self) -> List[str]:
        """Return the source files of all Python frames that were read."""
        frames = [frame for _thread, frames in self.threads.drafts for frame in frames]
        tasks = self.side.tasks.tasks if self.side is not None else ()
        return sorted({frame.code.filename for frame in frames} | {f.file for task in tasks for f in task.stack})


def read_process(context: ProcessContext, with_locals: bool) -> Reading:
    """Run all passes.

    ``with_locals``: read local variables.
    """
    variables = Variables(context.python, context.gaps) if context.python is not None and with_locals else None
    stacks = Stacks(context.python, variables, context.gaps)
    descriptors = DescriptorBook(context.raw.descriptors)
    if not isinstance(context, PythonContext):
        return Reading(context, stacks, descriptors, read_threads(context, None, stacks, descriptors), None)
    shared = SharedWork(context)
    tasks = read_tasks(context, stacks.suspended, descriptors)
    stacks.greenlets_read = tasks.greenlets
    pools = Pools(context, tasks.runner, shared.runner)
    waits, buffers = LockWaits(context, pools), BufferBook(context)
    polling = Polling(context)
    books = Books(context.python, tasks, shared, waits, buffers, polling)
    threads = read_threads(context, books, stacks, descriptors)
    tasks = polling_tasks(tasks, polling, waits, descriptors)
    locks = LockBook(context, waits, find_holders(context, waits.wanted, tasks.suspended))
    gates = find_gates(context, threads, waits, tasks)
    tasks = tasks._replace(tasks=tuple(gates.task(task) for task in tasks.tasks))
    tasks = with_cancellations(context, tasks)
    side = PythonSide(context, tasks, pools, waits, locks, shared, shared.semaphores.holders(), buffers, gates)
    return Reading(context, stacks, descriptors, threads, side)
