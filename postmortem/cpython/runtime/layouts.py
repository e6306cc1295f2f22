"""Fields of a layout: offsets that differ between versions, and those that never changed.

``releases`` has a row per minor version; offsets that an interpreter publishes (3.13+, ``debugoffsets``) override it.
Offsets are in bytes; -1 means that the version has no such field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

#: Offsets in builds with a GIL, stable since 3.8: PyObject, PyVarObject, PyTypeObject (Include/object.h,
#: cpython/object.h).
OB_TYPE, OB_SIZE = 8, 16
TP_NAME, TP_BASICSIZE, TP_FLAGS, TP_BASE, TP_DICT, TP_DICTOFFSET = 24, 32, 168, 256, 264, 288


@dataclass(frozen=True)
class Layout:
    """Offsets of one minor version. Field names are CPython's, prefixed by a short name of the struct."""

    version: Tuple[int, int]
    # _PyRuntimeState
    rt_interpreters_head: int
    rt_interpreters_main: int
    rt_finalizing: int
    rt_gil: int  # the struct itself in _PyRuntime up to 3.11; -1 since 3.12
    # PyInterpreterState
    is_next: int
    is_id: int
    is_threads_head: int
    is_modules: int
    is_sysdict: int
    is_builtins: int
    is_gil: int  # pointer to the struct, since 3.12
    is_gc_collecting: int
    # PyThreadState
    ts_next: int
    ts_interp: int
    ts_cframe: int  # up to 3.12: pointer to _PyCFrame
    ts_current_frame: int  # in _PyCFrame up to 3.12, in the thread state since 3.13
    ts_thread_id: int
    ts_native_thread_id: int
    ts_exc_info: int  # pointer to the topmost _PyErr_StackItem: exceptions being handled
    ts_raised: int  # propagating exception: curexc_value up to 3.11, current_exception since 3.12
    ts_state: int  # 3.13+: _Py_THREAD_DETACHED 0, ATTACHED 1, SUSPENDED 2
    # _PyErr_StackItem
    exc_value: int
    exc_previous: int
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
    unicode_data: int  # non-compact strings
    long_tag: bool  # 3.12+: sign and size in lv_tag; earlier in ob_size
    dict_values_start: int
    values_before_object: bool  # 3.11: PyDictValues* at -4 words, dict at -3; 3.12: tagged pointer at -3
    inline_values: bool  # 3.13: values follow the object
    ht_cached_keys: int
    # generators, tasks
    gen_frame_state: int
    gen_iframe: int
    gen_exc_state: int  # the _PyErr_StackItem of the exception that it handles
    gen_created: int  # value of gi_frame_state
    gen_completed: int
    fut_state: int
    task_fut_waiter: int
    task_coro: int
    task_name: int
    task_must_cancel: int  # a byte, of which one bit is the flag
    task_must_cancel_bit: int
    task_cancels: int = -1  # since 3.11: number of cancellation requests
    # exceptions: PyThreadState.curexc_type and curexc_traceback accompany curexc_value up to 3.11;
    # PyBaseExceptionObject, PyTracebackObject, PyFrameObject.f_frame (up to 3.10 a frame object is the frame itself)
    ts_raised_type: int = -1
    ts_raised_traceback: int = -1
    be_args: int = 24
    be_traceback: int = 40
    tb_next: int = 16
    tb_frame: int = 24
    tb_lasti: int = 32
    tb_lineno: int = 36
    fo_frame: int = 24
    # up to 3.10 (frames are objects on the heap, of ``heapframes``): PyFrameObject, PyTryBlock, code, dict keys
    heap_frames: bool = False
    rt_gc_collecting: int = -1  # 3.8: the collector's state is in the runtime
    fr_valuestack: int = -1
    fr_executing: int = -1  # 3.8, 3.9: a flag, set while the frame runs
    fr_state: int = -1  # 3.10: FRAME_CREATED -2, FRAME_SUSPENDED -1, FRAME_EXECUTING 0; finished above
    fr_iblock: int = -1
    fr_blockstack: int = -1
    instr_unit: int = 1  # unit of f_lasti and b_handler, in bytes of code
    line_table: str = "locations"  # format: "lnotab" 3.8 and 3.9, "ranges" 3.10
    co_names: int = 32
    co_local_names: Tuple[int, ...] = ()  # tuples of names that form localsplus; empty: use co_localsplusnames
    dk_log2: bool = True  # PyDictKeysObject stores logarithms of its sizes; before 3.11 the number of slots
    func_code: int = 48
    func_qualname: int = 40
    # objects: offsets in builds with a GIL, the same since 3.8 unless noted; published ones override them
    ob_extra: int = 0  # added to the offset of every object field: 16 in free-threaded builds
    ob_type: int = OB_TYPE
    ob_size: int = OB_SIZE
    tp_name: int = TP_NAME
    tp_basicsize: int = TP_BASICSIZE
    tp_flags: int = TP_FLAGS
    tp_base: int = TP_BASE
    tp_dict: int = TP_DICT
    tp_dictoffset: int = TP_DICTOFFSET
    str_length: int = 16
    str_state: int = 32
    str_kind_bit: int = 2  # bit of the state; 8 in free-threaded builds since 3.14, where `interned` is a byte
    long_value: int = 16  # lv_tag; ob_size before 3.12
    long_digits: int = 24
    float_value: int = 16
    bytes_data: int = 32
    tuple_items: int = 24  # 32 since 3.14, which stores a hash before them
    list_items: int = 24  # pointer to the items
    set_used: int = 24
    set_mask: int = 32
    set_table: int = 40
    dict_keys: int = 32
    dict_values: int = 40
    managed_dict: int = -24  # MANAGED_DICT_OFFSET, from the object: -8 if no PyGC_Head precedes it
    # struct _gil_runtime_state begins with an int `enabled` in free-threaded builds
    gil_enabled: int = -1
    gil_start: int = 0
    # since 3.14: _PyStackRef, a pointer with tags in its lowest bits; a frame stores its height as a pointer
    stackref_tags: int = 0
    fr_stackpointer: int = -1
    gen_executing: int = 0  # value of gi_frame_state
    # free-threaded builds since 3.14: each thread has a copy of the bytecode
    co_tlbc: int = -1
    fr_tlbc_index: int = -1
    # free-threaded builds: holders of per-object locks; the requester of a stopped world
    ts_critical_section: int = -1
    is_stoptheworld: int = -1
    # since 3.14: lists of tasks, linked through TaskObj.task_node
    is_asyncio_tasks: int = -1
    ts_asyncio_tasks: int = -1
    task_node: int = -1


#: struct _gil_runtime_state (Include/internal/pycore_gil.h of 3.8-3.15 with FORCE_SWITCHING), relative to
#: Layout.gil_start: interval in microseconds, last holder, locked, number of switches; then two condition variables:
#: that of the GIL's waiters, and that on which a forced switch waits for the next holder to run.
GIL_INTERVAL, GIL_LAST_HOLDER, GIL_LOCKED, GIL_SWITCH_NUMBER = 0, 8, 16, 24
GIL_COND, GIL_SWITCH_COND, GIL_SIZE = 32, 120, 208

#: PyTypeObject.tp_flags (Include/object.h)
FLAG_INLINE_VALUES, FLAG_MANAGED_DICT = 1 << 2, 1 << 4
FLAG_LONG, FLAG_LIST, FLAG_TUPLE, FLAG_BYTES, FLAG_UNICODE, FLAG_DICT = (1 << n for n in range(24, 30))
FLAG_EXCEPTION, FLAG_TYPE = 1 << 30, 1 << 31
#: PyModuleObject.md_dict, after the header (Include/internal/pycore_moduleobject.h)
MODULE_DICT = 16
#: Py_TPFLAGS_HEAPTYPE: a type made at run time, as every `class` is.
FLAG_HEAP = 1 << 9

#: _PyInterpreterFrame.owner (Include/internal/pycore_frame.h; pycore_interpframe_structs.h of 3.14). Values above
#: OWNED_BY_FRAME_OBJECT stand for C code: FRAME_OWNED_BY_CSTACK of 3.12, FRAME_OWNED_BY_INTERPRETER.
OWNED_BY_GENERATOR, OWNED_BY_FRAME_OBJECT = 1, 2

#: PyThreadState.state (Include/internal/pycore_pystate.h): suspended threads wait for a stopped world. 3.15 has further
#: states, in which a thread is not attached either.
THREAD_DETACHED, THREAD_ATTACHED, THREAD_SUSPENDED = 0, 1, 2
