"""Byte offsets as in ``releases``, for the releases whose frames are objects on the heap: 3.8, 3.9, 3.10.

Sources, x86-64 Linux, 3.8.18, 3.9.18 and 3.10.13:
- ``offsetof`` compiled against Include/internal/pycore_{runtime,interp,pystate,gil}.h,
  Include/cpython/{frameobject,code,pystate}.h, Include/frameobject.h, and Include/code.h and Include/genobject.h of
  3.8.
- DWARF of the same builds for structs in .c files (Modules/_asynciomodule.c, _threadmodule.c, Objects/dict-common.h).
"""

from __future__ import annotations

from typing import Dict, Tuple

from .layouts import Layout

_V308 = dict(
    version=(3, 8), heap_frames=True,
    rt_interpreters_head=32, rt_interpreters_main=40, rt_finalizing=16, rt_gil=1152,
    rt_gc_collecting=544,
    is_next=0, is_id=16, is_threads_head=8, is_modules=56, is_sysdict=72, is_builtins=80, is_gil=-1,
    is_gc_collecting=-1,
    ts_next=8, ts_interp=16, ts_cframe=-1, ts_current_frame=24, ts_thread_id=176, ts_native_thread_id=-1, ts_state=-1,
    ts_exc_info=144, ts_raised=96, ts_raised_type=88, ts_raised_traceback=104, exc_value=8, exc_previous=24,
    be_traceback=32,
    fr_code=32, fr_previous=24, fr_instr=104, fr_stacktop=72, fr_globals=48, fr_owner=-1, fr_is_entry=-1,
    fr_localsplus=360, fr_valuestack=64, fr_executing=116, fr_iblock=112, fr_blockstack=120, fo_frame=-1,
    co_filename=104, co_name=112, co_qualname=-1, co_linetable=120, co_exceptiontable=-1, co_firstlineno=40,
    co_firsttraceable=-1, co_nlocalsplus=-1, co_stacksize=32, co_localsplusnames=-1, co_code=48, co_names=64,
    co_local_names=(72, 88, 80),  # co_varnames, co_cellvars, co_freevars
    line_table="lnotab",
    ascii_size=48, compact_size=72, unicode_data=72, long_tag=False, dict_values_start=0, values_before_object=True,
    inline_values=False, ht_cached_keys=872, dk_log2=False, func_code=16, func_qualname=104,
    gen_frame_state=-1, gen_iframe=16, gen_exc_state=64, gen_created=-2, gen_completed=1,
    fut_state=72, task_fut_waiter=104, task_coro=112, task_name=120,
    task_must_cancel=136, task_must_cancel_bit=0,
)  # fmt: skip

_V309 = {
    **_V308,
    **dict(
        version=(3, 9),
        rt_gil=352, rt_gc_collecting=-1,
        is_id=24, is_modules=856, is_sysdict=872, is_builtins=880, is_gc_collecting=816,
        ht_cached_keys=864,
        fut_state=80, task_fut_waiter=144, task_coro=152, task_name=160, task_must_cancel=176,
    ),
}  # fmt: skip

_V310 = {
    **_V309,
    **dict(
        version=(3, 10),
        fr_instr=96, fr_stacktop=80, fr_localsplus=352, fr_executing=-1, fr_state=108, fr_iblock=104,
        fr_blockstack=112, instr_unit=2,
        line_table="ranges",
        ht_cached_keys=872, func_code=48, func_qualname=40,
        gen_exc_state=56,
        fut_state=88, task_fut_waiter=152, task_coro=160, task_name=168, task_must_cancel=184,
    ),
}  # fmt: skip

HEAP_LAYOUTS: Dict[Tuple[int, int], Layout] = {
    (3, 8): Layout(**_V308),  # type: ignore[arg-type]
    (3, 9): Layout(**_V309),  # type: ignore[arg-type]
    (3, 10): Layout(**_V310),  # type: ignore[arg-type]
}
