"""Byte offsets of the fields of CPython's structures: a ``Layout`` for each minor version and its free-threaded build.

``python -m tools.offsets`` prints a row from a release's headers, and with ``--check`` compares it with the row here.

Sources, x86-64 Linux, 3.11.7, 3.12.1, 3.13.0, 3.13.18, 3.14.10 and 3.15.2, since 3.13 with Py_GIL_DISABLED, too:
- ``offsetof``/``sizeof`` compiled against
  Include/internal/pycore_{runtime,interp,interp_structs,interpframe_structs,frame,dict,gil,code,tstate}.h and
  Include/cpython/*.h.
- DWARF of the same builds for structs in .c files (Modules/_asynciomodule.c, _threadmodule.c, _collectionsmodule.c,
  Objects/genobject.c).
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Dict, Tuple

from .layouts import Layout
from .releases_heap import HEAP_LAYOUTS

_V311 = dict(
    version=(3, 11),
    rt_interpreters_head=40, rt_interpreters_main=48, rt_finalizing=24, rt_gil=360,
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
    gen_frame_state=75, gen_iframe=80, gen_exc_state=48, gen_created=-2, gen_completed=1,
    fut_state=88, task_fut_waiter=128, task_coro=136, task_name=144,
    task_must_cancel=160, task_must_cancel_bit=0, task_cancels=168,
    ts_raised_type=96, ts_raised_traceback=112,
)  # fmt: skip

_V312 = {
    **_V311,
    **dict(
        version=(3, 12),
        rt_gil=-1,
        is_id=8, is_threads_head=72, is_modules=944, is_sysdict=352, is_builtins=360, is_gil=384,
        is_gc_collecting=312,
        ts_current_frame=0, ts_thread_id=136, ts_native_thread_id=144, ts_exc_info=104, ts_raised=96,
        ts_raised_type=-1, ts_raised_traceback=-1,
        fr_code=0, fr_previous=8, fr_globals=24, fr_owner=70, fr_is_entry=-1,
        co_firstlineno=68, co_firsttraceable=176, co_nlocalsplus=72, co_stacksize=64, co_code=192,
        ascii_size=40, compact_size=56, unicode_data=56, long_tag=True, values_before_object=False,
        ht_cached_keys=880,
        gen_frame_state=67, gen_iframe=72, gen_exc_state=40,
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
        task_must_cancel=100, task_must_cancel_bit=2, task_cancels=104,
    ),
}  # fmt: skip

_V314 = {
    **_V313,
    **dict(
        version=(3, 14),
        rt_interpreters_head=808, rt_interpreters_main=816, rt_finalizing=784,
        is_next=7272, is_id=7280, is_modules=7688, is_sysdict=7672, is_builtins=7680,
        ts_state=44,
        fr_owner=74, fr_localsplus=80, fr_stacktop=-1, fr_stackpointer=64, stackref_tags=3,
        co_firsttraceable=192, co_code=208, tuple_items=32,
        fut_state=104, task_fut_waiter=120, task_coro=128, task_name=136, task_node=152,
        task_must_cancel=110, task_cancels=112,
        is_asyncio_tasks=10880, ts_asyncio_tasks=880,
    ),
}  # fmt: skip

_V315 = {
    **_V314,
    **dict(
        version=(3, 15),
        rt_interpreters_head=936, rt_interpreters_main=944, rt_finalizing=912,
        is_next=7264, is_id=7272, is_threads_head=7336, is_modules=7592, is_sysdict=7576, is_builtins=7584,
        is_gc_collecting=7512,
        ts_thread_id=176, ts_native_thread_id=184, ts_exc_info=144, ts_raised=136, ts_state=48,
        ht_cached_keys=888,
        gen_created=0, gen_executing=4, gen_completed=5,
        is_asyncio_tasks=10856, ts_asyncio_tasks=1048,
    ),
}  # fmt: skip

LAYOUTS: Dict[Tuple[int, int], Layout] = {
    **HEAP_LAYOUTS,
    (3, 11): Layout(**_V311),  # type: ignore[arg-type]
    (3, 12): Layout(**_V312),  # type: ignore[arg-type]
    (3, 13): Layout(**_V313),  # type: ignore[arg-type]
    (3, 14): Layout(**_V314),  # type: ignore[arg-type]
    (3, 15): Layout(**_V315),  # type: ignore[arg-type]
}

#: Offsets of free-threaded builds that differ by more than the larger object header (``_OF_OBJECTS``).
_FREE_THREADED: Dict[Tuple[int, int], Dict[str, int]] = {
    (3, 13): dict(
        is_modules=7664, is_sysdict=7648, is_builtins=7656, ts_critical_section=176,
        is_stoptheworld=10744,
    ),
    (3, 14): dict(
        is_modules=7712, is_sysdict=7696, is_builtins=7704, ts_critical_section=176,
        is_stoptheworld=10848, fr_owner=78, fr_tlbc_index=72, co_tlbc=224, co_code=232, str_kind_bit=8,
        is_asyncio_tasks=17304,
    ),
    (3, 15): dict(
        ts_critical_section=200, is_stoptheworld=10800, fr_owner=78, fr_tlbc_index=72,
        co_tlbc=224, co_code=232, str_kind_bit=8, is_asyncio_tasks=17256,
    ),
}  # fmt: skip
#: Bytes added to the header in free-threaded builds: struct _object (Include/object.h) has ob_tid, ob_flags, ob_mutex,
#: ob_gc_bits, ob_ref_local and ob_ref_shared before ob_type, instead of ob_refcnt alone.
_EXTRA = 16
#: Prefixes of Layout fields that are offsets in objects; below, fields with such a prefix that are not.
_OF_OBJECTS = ("co_", "be_", "tb_", "fo_", "func_", "ht_", "gen_frame_state", "gen_iframe", "gen_exc_state",
               "fut_", "task_", "ob_", "tp_",
               "str_length", "str_state", "ascii_", "compact_", "unicode_", "long_value", "long_digits", "float_",
               "bytes_", "tuple_", "list_", "set_", "dict_keys", "dict_values")  # fmt: skip
_NO_PLACES = ("dict_values_start", "co_local_names", "task_must_cancel_bit")


def derived(row: Layout, stated: Dict[str, int]) -> Layout:
    """Derive the row of a free-threaded build from that of the default build, and from what is stated for it alone."""
    shifted = {
        field.name: getattr(row, field.name) + _EXTRA
        for field in fields(row)
        if field.name.startswith(_OF_OBJECTS) and field.name not in _NO_PLACES and getattr(row, field.name) >= 0
    }
    return replace(row, **{**shifted, "managed_dict": -8, "gil_enabled": 0, "gil_start": 8, **stated})  # type: ignore[arg-type]


FREE_THREADED: Dict[Tuple[int, int], Layout] = {
    minor: derived(LAYOUTS[minor], stated) for minor, stated in _FREE_THREADED.items()
}
