"""One row of offsets per minor version.

Source of every number: ``offsetof``/``sizeof`` compiled against the headers of 3.11.7, 3.12.1 and 3.13.0 on
x86-64 Linux (Include/internal/pycore_{runtime,interp,frame,dict,gil,code}.h, Include/cpython/*.h), and DWARF of
the same builds for the structs that live in .c files (Modules/_asynciomodule.c, _threadmodule.c,
_collectionsmodule.c, Objects/genobject.c).
"""

from __future__ import annotations

from typing import Dict, Tuple

from .layouts import Layout
from .releases_heap import HEAP_LAYOUTS

_V311 = dict(
    version=(3, 11),
    rt_interpreters_head=40, rt_interpreters_main=48, rt_finalizing=24, rt_gil=360, rt_tstate_current=576,
    is_next=0, is_id=48, is_threads_head=16, is_modules=888, is_sysdict=904, is_builtins=912, is_gil=-1,
    is_gc_collecting=848,
    ts_next=8, ts_interp=16, ts_cframe=56, ts_current_frame=8, ts_thread_id=152, ts_native_thread_id=160, ts_state=-1,
    ts_exc_info=120, ts_raised=104, exc_value=0, exc_previous=8,
    fr_code=32, fr_previous=48, fr_instr=56, fr_stacktop=64, fr_globals=8, fr_owner=69, fr_is_entry=68,
    fr_localsplus=72,
    co_filename=112, co_name=120, co_qualname=128, co_linetable=136, co_exceptiontable=40, co_firstlineno=72,
    co_firsttraceable=168, co_nlocalsplus=76, co_stacksize=68, co_localsplusnames=96, co_code=184,
    ascii_size=48, compact_size=72, unicode_data=72, long_tag=False, dict_values_start=0, values_before_object=True,
    inline_values=False, ht_cached_keys=872,
    gen_frame_state=75, gen_iframe=80, gen_created=-2, gen_completed=1,
    fut_state=88, task_fut_waiter=128, task_coro=136, task_name=144,
    ts_raised_type=96, ts_raised_traceback=112,
)  # fmt: skip

_V312 = {
    **_V311,
    **dict(
        version=(3, 12),
        rt_gil=-1, rt_tstate_current=-1,
        is_id=8, is_threads_head=72, is_modules=944, is_sysdict=352, is_builtins=360, is_gil=384,
        is_gc_collecting=312,
        ts_current_frame=0, ts_thread_id=136, ts_native_thread_id=144, ts_exc_info=104, ts_raised=96,
        ts_raised_type=-1, ts_raised_traceback=-1,
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
        ts_exc_info=120, ts_raised=112,
        co_firsttraceable=184, co_code=200,
        dict_values_start=8, inline_values=True,
        gen_created=-3,
        fut_state=96, task_fut_waiter=112, task_coro=120, task_name=128,
    ),
}  # fmt: skip

LAYOUTS: Dict[Tuple[int, int], Layout] = {
    **HEAP_LAYOUTS,
    (3, 11): Layout(**_V311),  # type: ignore[arg-type]
    (3, 12): Layout(**_V312),  # type: ignore[arg-type]
    (3, 13): Layout(**_V313),  # type: ignore[arg-type]
}
