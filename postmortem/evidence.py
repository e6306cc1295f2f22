"""What is known about the processes: the only input of classification and reports.

Everything here is immutable and reads and writes as JSON (``encode`` / ``decode``). ``None`` always means
*unknown*, never *no*; what could not be read stands in ``Evidence.gaps`` with the reason and a remedy.

Units: seconds are floats, addresses are ints, ``tid``/``pid`` are the kernel's ids in the target's own pid
namespace. Lists of frames run from the most recent call to the oldest.

msgspec checks the types when evidence of another machine is read back; it needs ``typing``'s spelling of
optional and tuple types on Python 3.8.
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple, TypeVar, Union

import msgspec

SCHEMA = "postmortem.evidence/1"


class Local(msgspec.Struct, frozen=True):
    """A variable of a frame, read on request only. ``text`` is bounded; what looks like a secret is masked."""

    name: str
    type: str
    text: str


class PythonFrame(msgspec.Struct, frozen=True, tag="python", tag_field="kind"):
    """A frame of Python code. ``file`` is the path that the interpreter holds (``co_filename``).

    Two frames are equal when they are at the same line of the same function: which expression of the line runs, and
    what the variables hold, tells nothing about where it is.
    """

    file: str
    line: Optional[int]
    function: str  # co_name
    qualname: Optional[str] = None  # co_qualname, from 3.11 on
    module: Optional[str] = None  # __name__ of the frame's globals
    role: Optional[str] = None  # "signal-handler": entered by the interpreter with (signal number, frame)
    end_line: Optional[int] = None  # of the expression that runs, from 3.11 on
    column: Optional[int] = None  # bytes of the line's UTF-8 before it
    end_column: Optional[int] = None  # bytes of end_line's UTF-8 up to its end
    locals: Optional[Tuple[Local, ...]] = None  # None: not asked for, or not read

    def _place(self) -> Tuple[object, ...]:
        return (self.file, self.line, self.function, self.qualname, self.module, self.role)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PythonFrame) and self._place() == other._place()

    def __ne__(self, other: object) -> bool:
        return not self == other  # msgspec's own compares every field

    def __hash__(self) -> int:
        return hash(self._place())

    def at(self, line: Optional[int]) -> PythonFrame:
        """The same function, at another line."""
        return replace(self, line=line, end_line=None, column=None, end_column=None)


class NativeFrame(msgspec.Struct, frozen=True, tag="native", tag_field="kind"):
    """A native frame as gdb unwound it."""

    function: Optional[str]
    module: Optional[str]  # path of the mapped file
    address: int
    file: Optional[str] = None
    line: Optional[int] = None
    trust: str = "unwind"  # "symbol" | "unwind" | "scan"


Frame = Union[PythonFrame, NativeFrame]


class Counters(msgspec.Struct, frozen=True):
    """What a thread or process did over the observation window (differences, not totals)."""

    seconds: float  # length of the window
    cpu_s: Optional[float] = None
    voluntary_switches: Optional[int] = None
    involuntary_switches: Optional[int] = None
    run_delay_s: Optional[float] = None  # runnable, but waiting for a CPU
    minor_faults: Optional[int] = None
    major_faults: Optional[int] = None  # pages that came from a disk
    io_delay_s: Optional[float] = None  # waiting for block devices; None where the kernel does not count it
    read_calls: Optional[int] = None  # read(2) and its like
    write_calls: Optional[int] = None
    states: Dict[str, int] = {}  # state letter → how many looks found it
    syscalls: Dict[str, int] = {}  # name ("running" for none) → how many looks found it
    wchan: Dict[str, int] = {}


class Sample(msgspec.Struct, frozen=True):
    """A distinct Python stack of a thread that py-spy saw during the window."""

    count: int  # how many samples showed it
    first_s: float  # seconds since the window began
    last_s: float
    frames: Tuple[PythonFrame, ...]


class Wait(msgspec.Struct, frozen=True):
    """What a thread waits for.

    kind: gil lock rlock condition semaphore event-loop socket pipe file process sleep futex mutex signal other
    """

    kind: str
    syscall: Optional[str] = None
    resource: Optional[str] = None  # id in Process.resources
    timeout_s: Optional[float] = None  # None: unknown or without end (see `endless`)
    endless: Optional[bool] = None  # True: no timeout at all
    fd: Optional[int] = None
    pid: Optional[int] = None  # the child waited for
    detail: Optional[str] = None  # one phrase for people


class HeldLock(msgspec.Struct, frozen=True):
    """A lock that a frame of a thread holds."""

    resource: str
    frame: PythonFrame  # the frame whose `with` (or acquire) it is; line = where it was entered when known
    depth: int  # index of that frame in Thread.python, 0 = most recent call
    basis: str  # "recorded" | "with-slot" | "inferred"


class ThreadException(msgspec.Struct, frozen=True):
    """An exception that a thread is busy with; where it was raised, as far as its traceback says."""

    state: str  # "handled": an except or finally clause runs | "raised": on its way up
    type: str
    file: Optional[str] = None
    line: Optional[int] = None
    function: Optional[str] = None
    message: Optional[str] = None  # may hold secrets: read only where locals are


class Recursion(msgspec.Struct, frozen=True):
    """What a deep Python stack repeats."""

    depth: int  # Python frames of the thread, in all
    times: int
    cycle: Tuple[PythonFrame, ...]  # one turn, most recent call first
    same_lines: bool = True  # False: the functions repeat, their lines differ from turn to turn


class LeftOut(msgspec.Struct, frozen=True):
    """Frames of a deep stack that evidence does not keep."""

    behind: int  # index in Thread.stack: those before it are the innermost ones
    frames: int


class Thread(msgspec.Struct, frozen=True):
    tid: int
    name: Optional[str] = None
    state: Optional[str] = None  # letter from /proc (R S D T t Z)
    gil: str = "unknown"  # "holds" | "waits" | "detached" | "unknown"
    wait: Optional[Wait] = None
    stack: Tuple[Frame, ...] = ()  # merged, most recent call first
    counters: Optional[Counters] = None
    samples: Tuple[Sample, ...] = ()
    holds: Tuple[HeldLock, ...] = ()
    is_main: bool = False
    daemon: Optional[bool] = None
    ident: Optional[int] = None  # threading.get_ident()
    interpreter: Optional[int] = None
    joins: Optional[int] = None  # tid of the thread that this one joins, when known
    exceptions: Tuple[ThreadException, ...] = ()  # the one on its way up first, then the one handled last
    gc: Optional[bool] = None  # does it run the cyclic garbage collector?
    recursion: Optional[Recursion] = None
    left_out: Optional[LeftOut] = None

    @property
    def python(self) -> Tuple[PythonFrame, ...]:
        return tuple(f for f in self.stack if isinstance(f, PythonFrame))

    @property
    def native(self) -> Tuple[NativeFrame, ...]:
        return tuple(f for f in self.stack if isinstance(f, NativeFrame))


class Gil(msgspec.Struct, frozen=True):
    locked: Optional[bool] = None
    holder_tid: Optional[int] = None
    switch_interval: Optional[float] = None  # seconds
    handoffs: Optional[int] = None  # changes of holder during the window, the interpreter's own count
    handoffs_per_s: Optional[float] = None


class StopTheWorld(msgspec.Struct, frozen=True):
    """In a free-threaded build: somebody has every other thread pause, to collect garbage for instance."""

    requested: bool
    stopped: bool  # all of them have
    requester_tid: Optional[int] = None


class Interpreter(msgspec.Struct, frozen=True):
    id: int
    gil: Optional[Gil] = None
    collecting: Optional[bool] = None  # is a garbage collection in progress?
    stop_the_world: Optional[StopTheWorld] = None


class PythonInfo(msgspec.Struct, frozen=True):
    version: str
    implementation: str = "CPython"
    free_threaded: bool = False
    debug: Optional[bool] = None
    finalizing: Optional[bool] = None


class Resource(msgspec.Struct, frozen=True):
    """A thing that threads wait for. ``id`` is unique in its process and carries no address.

    kind: lock rlock condition pipe socket file process thread …
    """

    id: str
    kind: str
    description: str
    owner_tid: Optional[int] = None
    owner_basis: Optional[str] = None  # "recorded" | "with-slot" | "inferred"
    waiters: Tuple[int, ...] = ()
    locked: Optional[bool] = None
    local: Optional[str] = None  # sockets: local and remote address
    remote: Optional[str] = None
    accepted: Optional[bool] = None  # sockets: the local port is one this tree listens on
    listening: Optional[bool] = None
    peer_in_tree: Optional[bool] = None


class Loop(msgspec.Struct, frozen=True):
    """An event loop. Numbers are those of the moment of capture."""

    id: str
    tid: Optional[int]
    kind: str = "asyncio"
    ready: Optional[int] = None  # length of the ready queue
    scheduled: Optional[int] = None  # timers
    running_task: Optional[str] = None
    spins_per_s: Optional[float] = None
    ready_callbacks: Tuple[PythonFrame, ...] = ()  # functions waiting in the ready queue, when not tasks
    readers: Optional[int] = None  # descriptors in the selector
    sockets: Tuple[str, ...] = ()  # ids in Process.resources of the sockets that it watches
    watchers: Tuple[
        PythonFrame, ...
    ] = ()  # functions called when a watched descriptor is ready, the loop's own left out


class Task(msgspec.Struct, frozen=True):
    id: str
    name: Optional[str]
    state: str  # "pending" | "running" | "done" | "unknown"
    loop: Optional[str]
    stack: Tuple[PythonFrame, ...] = ()  # innermost await first
    awaiting: Optional[str] = None  # what the innermost frame awaits: "sleep(0)", "Future", "Task:NAME", …
    resource: Optional[str] = None  # id in Process.resources of the socket that it waits for


class ControlGroup(msgspec.Struct, frozen=True):
    """What the control group of a process, and those above it, did to it over the window. Bytes. ``stalls`` (PSI): share
    of the window in which "cpu some", "io full", … of its tasks stood still for want of it."""

    path: str
    frozen: Optional[bool] = None
    cpu_quota: Optional[float] = None  # CPUs that the tightest quota allows; None: unknown, or no quota
    throttled: Optional[float] = None  # share of the quota's periods in which it was used up early
    throttled_s: Optional[float] = None  # summed over the CPUs
    memory_limit: Optional[int] = None  # the one that is nearest to be reached; None: unknown, or no limit
    memory_used: Optional[int] = None
    oom_kills: Optional[int] = None
    stalls: Dict[str, float] = {}


class Machine(msgspec.Struct, frozen=True):
    """The machine over the window. Bytes; ``load`` is the one-minute average at its end; ``stalls`` as above."""

    load: Optional[float] = None
    memory: Optional[int] = None
    available: Optional[int] = None
    swap_free: Optional[int] = None
    swapped_in: Optional[int] = None
    swapped_out: Optional[int] = None
    oom_kills: Optional[int] = None
    steal: Optional[float] = None  # share of the CPUs' time that the hypervisor gave to others
    stalls: Dict[str, float] = {}


class Process(msgspec.Struct, frozen=True):
    pid: int
    ppid: Optional[int] = None
    argv: Tuple[str, ...] = ()
    exe: Optional[str] = None
    state: Optional[str] = None
    python: Optional[PythonInfo] = None
    interpreters: Tuple[Interpreter, ...] = ()
    threads: Tuple[Thread, ...] = ()
    resources: Tuple[Resource, ...] = ()
    loops: Tuple[Loop, ...] = ()
    tasks: Tuple[Task, ...] = ()
    age_s: Optional[float] = None  # seconds since it began, when the window began
    cpus_allowed: Optional[int] = None  # how many CPUs the scheduler may use for it
    io: Optional[Dict[str, int]] = None  # differences of /proc/PID/io over the window
    rss_growth: Optional[int] = None  # bytes over the window
    fatal_signal: Optional[int] = None  # from a core: the signal that ended it
    listening: Optional[Tuple[int, ...]] = None  # TCP ports on which its process tree listens
    directory: Optional[str] = None  # of its script, when frames name files by relative names
    counters: Optional[Counters] = None  # of the process as a whole
    tracer: Optional[int] = None  # pid of whoever traces it
    cgroup: Optional[ControlGroup] = None

    @property
    def gil(self) -> Optional[Gil]:
        """The main interpreter's lock."""
        return self.interpreters[0].gil if self.interpreters else None


class Trigger(msgspec.Struct, frozen=True):
    kind: str  # "timeout" | "stall" | "signal" | "pid" | "core"
    seconds: Optional[float] = None
    signal: Optional[str] = None


class Gap(msgspec.Struct, frozen=True):
    """Something that could not be read."""

    source: str  # "gdb", "py-spy", "ptrace", "core", "cpython", "proc", …
    subject: str
    reason: str
    remedy: Optional[str] = None


class Timings(msgspec.Struct, frozen=True):
    observe_s: Optional[float] = None
    pause_s: Optional[float] = None
    extract_s: Optional[float] = None
    classify_s: Optional[float] = None


class Evidence(msgspec.Struct, frozen=True):
    trigger: Trigger
    processes: Tuple[Process, ...] = ()
    gaps: Tuple[Gap, ...] = ()
    sources: Dict[str, Dict[int, str]] = {}  # file → line → text, for the lines that stacks show
    loops: Dict[str, Dict[int, Tuple[int, ...]]] = {}  # file → line → lines of the `for`/`while` around it, inner first
    timings: Timings = Timings()
    window_s: Optional[float] = None  # length of the observation window, None when there was none
    machine: Optional[Machine] = None
    schema: str = SCHEMA
    tool_version: str = ""

    def source(self, file: str, line: Optional[int]) -> Optional[str]:
        """The text of a source line, when it was at hand during extraction."""
        return self.sources.get(file, {}).get(line) if line is not None else None


def encode(evidence: Evidence) -> bytes:
    """JSON, one value, keys in the order of the classes, so that equal evidence gives equal bytes."""
    try:
        encoded = msgspec.json.encode(evidence)
    except UnicodeEncodeError:  # a path that is no UTF-8; rare, so the walk is paid for only then
        encoded = msgspec.json.encode(_spelled_out(msgspec.to_builtins(evidence)))
    return msgspec.json.format(encoded, indent=1)


def _spelled_out(value: Any) -> Any:
    """The same JSON-like value with lone surrogates as backslash escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_spelled_out(key): _spelled_out(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled_out(item) for item in value]
    return value


def decode(data: bytes) -> Evidence:
    """Evidence from JSON. Raises ValueError with one sentence when it is damaged or of another schema."""
    try:
        evidence = msgspec.json.decode(data, type=Evidence)
    except msgspec.MsgspecError as exc:
        raise ValueError(f"not readable as {SCHEMA}: {exc}") from exc
    if evidence.schema != SCHEMA:
        raise ValueError(f"written as {evidence.schema!r}, this version reads {SCHEMA}")
    return evidence


S = TypeVar("S", bound=msgspec.Struct)


def replace(value: S, **changes: Any) -> S:
    """A copy of a struct with some fields changed."""
    return msgspec.structs.replace(value, **changes)
