"""Where the fields lie: one row per CPython minor version.

Source of every number: ``offsetof``/``sizeof`` compiled against the headers of 3.11.7, 3.12.1 and 3.13.0 on
x86-64 Linux (Include/internal/pycore_{runtime,interp,frame,dict,gil,code}.h, Include/cpython/*.h), and DWARF of
the same builds for the structs that live in .c files (Modules/_asynciomodule.c, _threadmodule.c,
_collectionsmodule.c, Objects/genobject.c). ``_Py_DebugOffsets`` (3.13+) overrides a row where it has the field:
``runtime.py`` does that. Offsets are in bytes; -1 means that the version has no such field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Tuple


@dataclass(frozen=True)
class Layout:
    """Offsets of one minor version. Field names are CPython's, prefixed by a short name of the struct."""

    version: Tuple[int, int]
    # _PyRuntimeState
    rt_interpreters_head: int
    rt_interpreters_main: int
    rt_finalizing: int
    rt_gil: int  # struct itself in _PyRuntime up to 3.11; -1 from 3.12 on
    rt_tstate_current: int
    # PyInterpreterState
    is_next: int
    is_id: int
    is_threads_head: int
    is_modules: int
    is_sysdict: int
    is_builtins: int
    is_gil: int  # pointer to the struct, from 3.12 on
    is_gc_collecting: int
    # PyThreadState
    ts_next: int
    ts_interp: int
    ts_cframe: int  # up to 3.12: pointer to _PyCFrame
    ts_current_frame: int  # in _PyCFrame up to 3.12, in the thread state from 3.13 on
    ts_thread_id: int
    ts_native_thread_id: int
    ts_state: int  # 3.13+: _Py_THREAD_DETACHED 0, ATTACHED 1, SUSPENDED 2
    # _PyInterpreterFrame
    fr_code: int
    fr_previous: int
    fr_instr: int
    fr_stacktop: int
    fr_globals: int
    fr_owner: int
    fr_is_entry: int  # 3.11 only
    fr_localsplus: int
    # PyCodeObject
    co_filename: int
    co_name: int
    co_qualname: int
    co_linetable: int
    co_exceptiontable: int
    co_firstlineno: int
    co_firsttraceable: int
    co_nlocalsplus: int
    co_stacksize: int
    co_localsplusnames: int
    co_code: int
    # strings, numbers, containers
    ascii_size: int
    compact_size: int
    unicode_data: int  # of strings that are not compact
    long_tag: bool  # 3.12+: sign and size in lv_tag; before, in ob_size
    dict_values_start: int
    values_before_object: bool  # 3.11: PyDictValues* at -4 words, dict at -3; 3.12: tagged pointer at -3
    inline_values: bool  # 3.13: values follow the object
    ht_cached_keys: int
    # generators, tasks
    gen_frame_state: int
    gen_iframe: int
    gen_created: int  # value of gi_frame_state
    gen_completed: int
    fut_state: int
    task_fut_waiter: int
    task_coro: int
    task_name: int


_V311 = dict(
    version=(3, 11),
    rt_interpreters_head=40, rt_interpreters_main=48, rt_finalizing=24, rt_gil=360, rt_tstate_current=576,
    is_next=0, is_id=48, is_threads_head=16, is_modules=888, is_sysdict=904, is_builtins=912, is_gil=-1,
    is_gc_collecting=848,
    ts_next=8, ts_interp=16, ts_cframe=56, ts_current_frame=8, ts_thread_id=152, ts_native_thread_id=160, ts_state=-1,
    fr_code=32, fr_previous=48, fr_instr=56, fr_stacktop=64, fr_globals=8, fr_owner=69, fr_is_entry=68,
    fr_localsplus=72,
    co_filename=112, co_name=120, co_qualname=128, co_linetable=136, co_exceptiontable=40, co_firstlineno=72,
    co_firsttraceable=168, co_nlocalsplus=76, co_stacksize=68, co_localsplusnames=96, co_code=184,
    ascii_size=48, compact_size=72, unicode_data=72, long_tag=False, dict_values_start=0, values_before_object=True,
    inline_values=False, ht_cached_keys=872,
    gen_frame_state=75, gen_iframe=80, gen_created=-2, gen_completed=1,
    fut_state=88, task_fut_waiter=128, task_coro=136, task_name=144,
)  # fmt: skip

_V312 = {
    **_V311,
    **dict(
        version=(3, 12),
        rt_gil=-1, rt_tstate_current=-1,
        is_id=8, is_threads_head=72, is_modules=944, is_sysdict=352, is_builtins=360, is_gil=384,
        is_gc_collecting=312,
        ts_current_frame=0, ts_thread_id=136, ts_native_thread_id=144,
        fr_code=0, fr_previous=8, fr_globals=24, fr_owner=70, fr_is_entry=-1,
        co_firstlineno=68, co_firsttraceable=176, co_nlocalsplus=72, co_stacksize=64, co_code=192,
        ascii_size=40, compact_size=56, unicode_data=56, long_tag=True, values_before_object=False,
        ht_cached_keys=880,
        gen_frame_state=67, gen_iframe=72,
    ),
}  # fmt: skip

_V313 = {
    **_V312,
    **dict(
        version=(3, 13),
        rt_interpreters_head=632, rt_interpreters_main=640, rt_finalizing=608,
        is_next=7264, is_id=7272, is_threads_head=7344, is_modules=7656, is_sysdict=7640, is_builtins=7648, is_gil=16,
        is_gc_collecting=7600,
        ts_cframe=-1, ts_current_frame=72, ts_thread_id=152, ts_native_thread_id=160, ts_state=40,
        co_firsttraceable=184, co_code=200,
        dict_values_start=8, inline_values=True,
        gen_created=-3,
        fut_state=96, task_fut_waiter=112, task_coro=120, task_name=128,
    ),
}  # fmt: skip

LAYOUTS: Dict[Tuple[int, int], Layout] = {
    (3, 11): Layout(**_V311),  # type: ignore[arg-type]
    (3, 12): Layout(**_V312),  # type: ignore[arg-type]
    (3, 13): Layout(**_V313),  # type: ignore[arg-type]
}

#: struct _gil_runtime_state (Include/internal/pycore_gil.h, pycore_gil.h of 3.11-3.13 with FORCE_SWITCHING):
#: interval in microseconds, holder, locked, count of switches, then the condition variable that waiters of the GIL
#: sleep on, and the one on which a forced switch waits for the next holder to run.
GIL_INTERVAL, GIL_LAST_HOLDER, GIL_LOCKED, GIL_SWITCH_NUMBER = 0, 8, 16, 24
GIL_COND, GIL_SIZE = 32, 208

#: Stable since 3.8: PyObject, PyVarObject, PyTypeObject (Include/object.h, cpython/object.h).
OB_TYPE, OB_SIZE = 8, 16
TP_NAME, TP_BASICSIZE, TP_FLAGS, TP_BASE, TP_DICTOFFSET = 24, 32, 168, 256, 288
FLAG_INLINE_VALUES, FLAG_MANAGED_DICT, FLAG_HEAPTYPE = 1 << 2, 1 << 4, 1 << 9
FLAG_LONG, FLAG_LIST, FLAG_TUPLE, FLAG_BYTES, FLAG_UNICODE, FLAG_DICT = (1 << n for n in range(24, 30))

#: PyCodeObject.co_names: a tuple of str, at the same place in 3.11-3.13.
CO_NAMES = 32

#: _PyInterpreterFrame.owner (Include/internal/pycore_frame.h)
OWNED_BY_GENERATOR, OWNED_BY_CSTACK = 1, 3

#: _Py_DebugOffsets of 3.13 (Include/internal/pycore_runtime.h): index of the 64-bit word after the cookie → field
#: of Layout. Word 0 is the version (hex), word 1 free_threaded.
DEBUG_COOKIE = b"xdebugpy"
DEBUG_OFFSETS_313: Dict[int, str] = {
    3: "rt_finalizing", 4: "rt_interpreters_head",
    6: "is_id", 7: "is_next", 8: "is_threads_head", 10: "is_modules", 11: "is_sysdict", 12: "is_builtins",
    13: "is_gil",
    20: "ts_next", 21: "ts_interp", 22: "ts_current_frame", 23: "ts_thread_id", 24: "ts_native_thread_id",
    28: "fr_previous", 29: "fr_code", 30: "fr_instr", 31: "fr_localsplus", 32: "fr_owner",
    34: "co_filename", 35: "co_name", 36: "co_qualname", 37: "co_linetable", 38: "co_firstlineno",
    40: "co_localsplusnames", 42: "co_code",
}  # fmt: skip
