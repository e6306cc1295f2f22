"""Interpreters and their thread states, the GIL, and the names that ``threading`` gives to threads."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Dict, FrozenSet, List, Optional, Tuple

from ...libc import musl
from ...memory import Fault, Image, Memory
from ..frames.chains import Chain, read_chain
from ..frames.frame import Frame
from ..frames.heapframes import frames_of
from ..objects.attributes import attributes
from ..objects.builtins import NotThat, Objects
from ..runtime import layouts as L
from ..runtime.discovery import Runtime, find_runtime
from ..sync.locks import Locks
from .typenames import read_type_names

MAX_THREADS = 100_000
MAX_INTERPRETERS = 1_000


@dataclass
class GilState:
    """The interpreter lock at the time of the read."""

    address: int
    locked: Optional[bool]
    holder: Optional[int]  # address of a thread state
    interval_s: Optional[float]
    switches: Optional[int]  # changes of holder since start-up
    elsewhere: FrozenSet[int] = frozenset()  # musl: futex words outside of the struct on which waiters sleep

    def word_is_wait(self, word: int) -> bool:
        """Return whether a futex wait on this word is a wait for the GIL.

        The struct contains the words of the condition, its mutex, and the pair for a forced switch (the thread has
        released the GIL and will re-acquire it); on musl, waiters sleep on the words ``elsewhere``, too.
        """
        return self.address + L.GIL_COND <= word < self.address + L.GIL_SIZE or word in self.elsewhere


@dataclass
class ThreadState:
    """A PyThreadState."""

    address: int
    interpreter: int  # id
    ident: int  # pthread_t
    native_id: Optional[int]  # tid in its own namespace; up to 3.10 from its threading.Thread
    attached: Optional[bool]  # 3.13+: its state says that it holds the interpreter
    frames: List[Frame] = field(default_factory=list)
    cut: Optional[str] = None  # reason why the chain of frames ends early
    chain: Optional[Chain] = None  # depth and recursion
    name: Optional[str] = None
    daemon: Optional[bool] = None
    object: Optional[int] = None  # address of its threading.Thread


@dataclass
class InterpreterState:
    """A PyInterpreterState; ``collecting``: the garbage collector runs, None if unknown."""

    address: int
    id: int
    gil: Optional[GilState]
    threads: List[ThreadState]
    collecting: Optional[bool]


class Python:
    """A CPython process, read on demand. Raises NoInterpreter."""

    def __init__(self, image: Image) -> None:
        self.runtime: Runtime = find_runtime(image)
        self.memory: Image = image
        self.on_musl = musl.is_musl(image.files)
        self.layout = self.runtime.layout
        self.objects = Objects(image, self.layout)
        self._learn_types()
        self.frames = frames_of(self.objects)
        #: Shared by several readers: caches the context managers of each frame.
        self.locks = Locks(self.frames)
        self.problems: List[str] = list(self.runtime.warnings)
        #: False if threads may be missing from ``interpreters``.
        self.all_threads = self.runtime.alone
        self.interpreters = self._read_interpreters()
        for interpreter in self.interpreters:
            self._name_threads(interpreter)

    def _learn_types(self) -> None:
        """Take names of types from the interpreter's modules if the file with the names is not available."""
        try:
            main = self.memory.u64(self.runtime.address + self.layout.rt_interpreters_main)
            modules = self.memory.u64(main + self.layout.is_modules)
            if self.objects.type_name(modules) is None:
                self.objects.type_names = read_type_names(self.objects, modules)
        except Fault:
            pass  # reported when the list of interpreters is read

    @property
    def finalizing(self) -> Optional[bool]:
        """Whether Py_Finalize has begun; None if unreadable."""
        try:
            return bool(self.memory.u64(self.runtime.address + self.layout.rt_finalizing))
        except Fault:
            return None

    @property
    def debug(self) -> Optional[bool]:
        """Whether it is a debug build (Py_DEBUG) according to ``sys.abiflags``; None if unreadable."""
        try:
            flags = self.objects.lookup(
                self.memory.u64(self.interpreters[0].address + self.layout.is_sysdict), "abiflags"
            )
            return "d" in self.objects.text(flags) if flags else None
        except (Fault, NotThat, IndexError):
            return None

    # ------------------------------------------------------------------ interpreters

    def look(self) -> List[InterpreterState]:
        """Read the interpreters of a running process again. Raises Fault or NotThat.

        Caches of types, names and code are kept: use it only for looks in close succession.
        """
        self.problems = list(self.runtime.warnings)
        self.interpreters = self._read_interpreters()
        return self.interpreters

    def _read_interpreters(self) -> List[InterpreterState]:
        """Return the interpreters, the main one first (the target's list is newest first)."""
        found: List[InterpreterState] = []
        seen = set()
        try:
            address = self.memory.u64(self.runtime.address + self.layout.rt_interpreters_head)
            while address and address not in seen and len(found) < MAX_INTERPRETERS:
                seen.add(address)
                found.append(self._read_interpreter(address))
                address = self.memory.u64(address + self.layout.is_next)
        except Fault as exc:
            self.all_threads = False
            self.problems.append(f"the list of interpreters: {exc}")
        return sorted(found, key=lambda i: i.id)

    def _read_interpreter(self, address: int) -> InterpreterState:
        """Read one interpreter with its GIL and threads. Raises Fault."""
        ident = self.memory.i64(address + self.layout.is_id)
        collecting: Optional[bool] = None
        with contextlib.suppress(Fault):
            if self.layout.rt_gc_collecting >= 0:
                collecting = bool(self.memory.u32(self.runtime.address + self.layout.rt_gc_collecting))
            else:
                collecting = bool(self.memory.u32(address + self.layout.is_gc_collecting))
        return InterpreterState(address, ident, self._read_gil(address), self._read_threads(address, ident), collecting)

    def _read_gil(self, interpreter: int) -> Optional[GilState]:
        """Read the GIL; None without one, or if unreadable or damaged, which is noted in ``problems``."""
        try:
            address = gil_address(self.memory, self.runtime, interpreter)
            if address is None:
                return None
            interval, holder, locked, switches = self.memory.words(address, 4)
        except Fault as exc:
            self.problems.append(f"the interpreter lock: {exc}")
            return None
        locked &= 0xFFFFFFFF
        if locked not in (0, 1, 0xFFFFFFFF) or interval > 1 << 40:
            self.problems.append("the interpreter lock: its record is damaged")
            return None
        # last_holder survives a release; locked is -1 until the lock is created
        state = GilState(address, locked == 1, holder if locked == 1 else None, interval / 1e6, switches)
        if self.on_musl:
            conditions = (address + L.GIL_COND, address + L.GIL_SWITCH_COND)
            state.elsewhere = frozenset().union(*(musl.condition_waiters(self.memory, each) for each in conditions))
        return state

    def _read_threads(self, interpreter: int, ident: int) -> List[ThreadState]:
        """Return the thread states, oldest first (the target's list is newest first)."""
        found: List[ThreadState] = []
        seen = set()
        try:
            address = self.memory.u64(interpreter + self.layout.is_threads_head)
            while address and address not in seen and len(found) < MAX_THREADS:
                seen.add(address)
                found.append(self._read_thread(address, ident))
                address = self.memory.u64(address + self.layout.ts_next)
        except Fault as exc:
            self.all_threads = False
            self.problems.append(f"the list of threads of interpreter {ident} ends early: {exc}")
        return found[::-1]

    def _read_thread(self, address: int, interpreter: int) -> ThreadState:
        """Read one thread state with its frames. Raises Fault."""
        memory, layout = self.memory, self.layout
        attached: Optional[bool] = None
        if layout.ts_state >= 0:
            attached = memory.u32(address + layout.ts_state) == L.THREAD_ATTACHED
        state = ThreadState(
            address,
            interpreter,
            memory.u64(address + layout.ts_thread_id),
            memory.u64(address + layout.ts_native_thread_id) if layout.ts_native_thread_id >= 0 else None,
            attached,
        )
        try:
            state.chain = read_chain(self.frames, current_frame(memory, self.runtime, address))
            state.frames, state.cut = state.chain.frames, state.chain.cut
        except Fault as exc:
            state.cut = str(exc)
        return state

    # ------------------------------------------------------------------ modules, names

    def module_dict(self, interpreter: InterpreterState, name: str) -> Optional[int]:
        """Return the namespace of an imported module (PyModuleObject.md_dict); None if missing or unreadable."""
        try:
            modules = self.memory.u64(interpreter.address + self.layout.is_modules)
            module = self.objects.lookup(modules, name)
            if module is None or not self.objects.is_instance(module, "module"):
                return None
            return self.objects.field(module, L.MODULE_DICT)
        except (Fault, NotThat):
            return None

    @property
    def main_thread(self) -> Optional[ThreadState]:
        """The main thread: the oldest of the first interpreter, which runs what ``atexit`` calls; None without threads."""
        return next((thread for interpreter in self.interpreters[:1] for thread in interpreter.threads[:1]), None)

    def module_value(self, interpreter: InterpreterState, module: str, name: str) -> Optional[int]:
        """Return a global of an imported module; None if missing or unreadable."""
        namespace = self.module_dict(interpreter, module)
        if not namespace:
            return None
        try:
            return self.objects.lookup(namespace, name)
        except (Fault, NotThat):
            return None

    def thread_objects(self, interpreter: InterpreterState) -> Dict[int, int]:
        """Map each ident to its threading.Thread, from ``threading._active``."""
        active = self.module_value(interpreter, "threading", "_active")
        found: Dict[int, int] = {}
        if active is None:
            return found
        try:
            for key, value in self.objects.dict_items(active):
                try:
                    found[self.objects.integer(key)] = value
                except (Fault, NotThat):
                    continue
        except (Fault, NotThat) as exc:
            self.problems.append(f"names of threads: {exc}")
        return found

    def _name_threads(self, interpreter: InterpreterState) -> None:
        """Set name, daemon flag and native id of threads from their threading.Thread."""
        known = self.thread_objects(interpreter)
        for thread in interpreter.threads:
            address = known.get(thread.ident)
            if address is None:
                continue
            thread.object = address
            try:
                values = attributes(self.objects, address)
            except (Fault, NotThat):
                continue
            thread.name = self.objects.optional_text(values["_name"]) if "_name" in values else None
            if "_daemonic" in values:
                thread.daemon = self._truth(values["_daemonic"])
            if thread.native_id is None and "_native_id" in values:
                thread.native_id = self._integer(values["_native_id"])

    def _truth(self, address: int) -> Optional[bool]:
        value = self._integer(address)
        return None if value is None else bool(value)

    def _integer(self, address: int) -> Optional[int]:
        try:
            return self.objects.integer(address)
        except (Fault, NotThat):
            return None


def current_frame(memory: Memory, runtime: Runtime, state: int) -> int:
    """Return the address of the innermost frame of a thread state; 0 if it runs none. Raises Fault."""
    layout = runtime.layout
    holder = memory.u64(state + layout.ts_cframe) if layout.ts_cframe >= 0 else state
    return memory.u64(holder + layout.ts_current_frame)


def gil_address(memory: Memory, runtime: Runtime, interpreter: int) -> Optional[int]:
    """Return the address of the GIL's struct; None in a free-threaded build that runs without one.

    Up to 3.11 it is in _PyRuntime, since 3.12 the interpreter points to it. A free-threaded build has one if
    PYTHON_GIL=1 or an extension enabled it.

    Raises: Fault, also if the interpreter is starting or ending.
    """
    layout = runtime.layout
    if layout.rt_gil >= 0:
        return runtime.address + layout.rt_gil
    address = memory.u64(interpreter + layout.is_gil)
    if not address:
        raise Fault(
            interpreter + layout.is_gil, 8, "not created yet, or already gone: the interpreter is starting or ending"
        )
    if layout.gil_enabled >= 0 and not memory.u32(address + layout.gil_enabled):
        return None
    return address + layout.gil_start


def switch_counter(memory: Memory, runtime: Runtime) -> Tuple[int, float]:
    """Return (address of the main interpreter's count of GIL switches, switch interval in seconds).

    For an observer of a running process, which reads this word at the beginning and end of its window.

    Raises: Fault.
    """
    interpreter = memory.u64(runtime.address + runtime.layout.rt_interpreters_main)
    address = gil_address(memory, runtime, interpreter)
    if address is None:
        raise Fault(interpreter, 8, "this interpreter runs without the interpreter lock (GIL)")
    interval = memory.u64(address + L.GIL_INTERVAL)
    if not 0 < interval < 1 << 40:
        raise Fault(address, 8, "the interpreter lock's record is damaged")
    return address + L.GIL_SWITCH_NUMBER, interval / 1e6


def holder_of(memory: Memory, counter: int) -> int:
    """Return the address of the thread state that holds the GIL; 0 if free. One read.

    ``counter``: address from :func:`switch_counter`. Raises: Fault.
    """
    _interval, holder, locked = memory.words(counter - L.GIL_SWITCH_NUMBER, 3)
    return holder if locked & 0xFFFFFFFF == 1 else 0
