"""Print the row of CPython's offsets that a set of headers gives, or compare it with the row that is there.

    python -m tools.offsets --python 3.13            # the headers of an interpreter: X.Y, or its path
    python -m tools.offsets --headers DIR            # an include directory: the one that has Python.h
    python -m tools.offsets --python 3.13 --check    # one line for each difference; exit status 1 if there is any

The rows are those of postmortem/cpython/runtime/releases.py and releases_heap.py. A C program with one function per
expression is compiled and run; an expression that does not compile is a field that these headers do not have. The
build that is measured is a release build with a GIL, and from 3.13 on the free-threaded one as well, whatever
pyconfig.h says. Needs a C compiler, which nothing else in this repository does.

A field has several expressions where its name changed between releases: the first that compiles counts.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from postmortem.cpython.runtime import debugoffsets, releases
from postmortem.cpython.runtime.layouts import Layout
from tests.interpreters import wanted

Value = Union[int, bool, str, Tuple[int, ...]]
Row = Dict[str, Value]
Version = Tuple[int, int]

#: Field of Layout → ``Struct.member``, alternatives separated by blanks. -1 where no struct has any of them.
OFFSETS: Dict[str, str] = {
    "rt_interpreters_head": "_PyRuntimeState.interpreters.head",
    "rt_interpreters_main": "_PyRuntimeState.interpreters.main",
    "rt_finalizing": "_PyRuntimeState._finalizing _PyRuntimeState.finalizing",
    "rt_gil": "_PyRuntimeState.ceval.gil",
    "rt_gc_collecting": "_PyRuntimeState.gc.collecting",
    "is_next": "PyInterpreterState.next",
    "is_id": "PyInterpreterState.id",
    "is_threads_head": "PyInterpreterState.threads.head PyInterpreterState.tstate_head",
    "is_modules": "PyInterpreterState.imports.modules PyInterpreterState.modules",
    "is_sysdict": "PyInterpreterState.sysdict",
    "is_builtins": "PyInterpreterState.builtins",
    "is_gil": "PyInterpreterState.ceval.gil",
    "is_gc_collecting": "PyInterpreterState.gc.collecting",
    "is_asyncio_tasks": "PyInterpreterState.asyncio_tasks_head",
    "ts_next": "PyThreadState.next",
    "ts_interp": "PyThreadState.interp",
    "ts_current_frame": "_PyCFrame.current_frame PyThreadState.current_frame PyThreadState.frame",
    "ts_thread_id": "PyThreadState.thread_id",
    "ts_native_thread_id": "PyThreadState.native_thread_id",
    "ts_exc_info": "PyThreadState.exc_info",
    "ts_raised": "PyThreadState.current_exception PyThreadState.curexc_value",
    "ts_raised_type": "PyThreadState.curexc_type",
    "ts_raised_traceback": "PyThreadState.curexc_traceback",
    "ts_state": "PyThreadState.state",
    "ts_asyncio_tasks": "_PyThreadStateImpl.asyncio_tasks_head",
    "exc_value": "_PyErr_StackItem.exc_value",
    "exc_previous": "_PyErr_StackItem.previous_item",
    "fr_code": "_PyInterpreterFrame.f_executable _PyInterpreterFrame.f_code PyFrameObject.f_code",
    "fr_previous": "_PyInterpreterFrame.previous PyFrameObject.f_back",
    "fr_instr": "_PyInterpreterFrame.instr_ptr _PyInterpreterFrame.prev_instr PyFrameObject.f_lasti",
    "fr_stacktop": "_PyInterpreterFrame.stacktop PyFrameObject.f_stackdepth PyFrameObject.f_stacktop",
    "fr_stackpointer": "_PyInterpreterFrame.stackpointer",
    "fr_globals": "_PyInterpreterFrame.f_globals PyFrameObject.f_globals",
    "fr_owner": "_PyInterpreterFrame.owner",
    "fr_is_entry": "_PyInterpreterFrame.is_entry",
    "fr_localsplus": "_PyInterpreterFrame.localsplus PyFrameObject.f_localsplus",
    "fr_tlbc_index": "_PyInterpreterFrame.tlbc_index",
    "fr_valuestack": "PyFrameObject.f_valuestack",
    "fr_executing": "PyFrameObject.f_executing",
    "fr_state": "PyFrameObject.f_state",
    "fr_iblock": "PyFrameObject.f_iblock",
    "fr_blockstack": "PyFrameObject.f_blockstack",
    "fo_frame": "PyFrameObject.f_frame",
    "co_filename": "PyCodeObject.co_filename",
    "co_name": "PyCodeObject.co_name",
    "co_names": "PyCodeObject.co_names",
    "co_qualname": "PyCodeObject.co_qualname",
    "co_linetable": "PyCodeObject.co_linetable PyCodeObject.co_lnotab",
    "co_exceptiontable": "PyCodeObject.co_exceptiontable",
    "co_firstlineno": "PyCodeObject.co_firstlineno",
    "co_firsttraceable": "PyCodeObject._co_firsttraceable",
    "co_nlocalsplus": "PyCodeObject.co_nlocalsplus",
    "co_stacksize": "PyCodeObject.co_stacksize",
    "co_localsplusnames": "PyCodeObject.co_localsplusnames",
    "co_code": "PyCodeObject.co_code_adaptive PyCodeObject.co_code",
    "co_tlbc": "PyCodeObject.co_tlbc",
    "unicode_data": "PyUnicodeObject.data",
    "str_length": "PyASCIIObject.length",
    "str_state": "PyASCIIObject.state",
    "long_value": "PyLongObject.long_value.lv_tag PyVarObject.ob_size",
    "long_digits": "PyLongObject.long_value.ob_digit PyLongObject.ob_digit",
    "float_value": "PyFloatObject.ob_fval",
    "bytes_data": "PyBytesObject.ob_sval",
    "tuple_items": "PyTupleObject.ob_item",
    "list_items": "PyListObject.ob_item",
    "set_used": "PySetObject.used",
    "set_mask": "PySetObject.mask",
    "set_table": "PySetObject.table",
    "dict_keys": "PyDictObject.ma_keys",
    "dict_values": "PyDictObject.ma_values",
    "ht_cached_keys": "PyHeapTypeObject.ht_cached_keys",
    "gen_frame_state": "PyGenObject.gi_frame_state",
    "gen_iframe": "PyGenObject.gi_iframe PyGenObject.gi_frame",
    "gen_exc_state": "PyGenObject.gi_exc_state",
    "be_args": "PyBaseExceptionObject.args",
    "be_traceback": "PyBaseExceptionObject.traceback",
    "tb_next": "PyTracebackObject.tb_next",
    "tb_frame": "PyTracebackObject.tb_frame",
    "tb_lasti": "PyTracebackObject.tb_lasti",
    "tb_lineno": "PyTracebackObject.tb_lineno",
    "func_code": "PyFunctionObject.func_code",
    "func_qualname": "PyFunctionObject.func_qualname",
    "ob_type": "PyObject.ob_type",
    "ob_size": "PyVarObject.ob_size",
    "tp_name": "PyTypeObject.tp_name",
    "tp_basicsize": "PyTypeObject.tp_basicsize",
    "tp_flags": "PyTypeObject.tp_flags",
    "tp_base": "PyTypeObject.tp_base",
    "tp_dict": "PyTypeObject.tp_dict",
    "tp_dictoffset": "PyTypeObject.tp_dictoffset",
}  # fmt: skip

#: Field → C expressions. Where none compiles, the headers do not tell the field.
EXPRESSIONS: Dict[str, Tuple[str, ...]] = {
    # offsets that only one kind of build uses, or that another struct holds as a pointer
    "ts_cframe": ("offsetof(PyThreadState, cframe) + 0 * sizeof(((_PyCFrame *)0)->current_frame)", "-1"),
    "ts_critical_section": ("FREE_THREADED ? offsetof(PyThreadState, critical_section) : -1L", "-1"),
    "is_stoptheworld": ("FREE_THREADED ? offsetof(PyInterpreterState, stoptheworld) : -1L", "-1"),
    "gil_enabled": ("offsetof(struct _gil_runtime_state, enabled)", "-1"),
    "gil_start": ("offsetof(struct _gil_runtime_state, interval)",),
    "dict_values_start": ("offsetof(struct _dictvalues, values)",),
    # sizes
    "ascii_size": ("sizeof(PyASCIIObject)",),
    "compact_size": ("sizeof(PyCompactUnicodeObject)",),
    "ob_extra": ("sizeof(PyObject) - 16",),
    # values
    "gen_created": ("FRAME_CREATED",),
    "gen_executing": ("FRAME_EXECUTING",),
    "gen_completed": ("FRAME_COMPLETED", "FRAME_RETURNED", "FRAME_CLEARED"),
    "managed_dict": ("MANAGED_DICT_OFFSET", "0 * (long)&_PyObject_DictOrValuesPointer - 24"),
    "stackref_tags": ("0 * sizeof(((_PyInterpreterFrame *)0)->stackpointer) + (Py_TAG_BITS | Py_INT_TAG)", "0"),
    "str_kind_bit": (
        "({ union { PyASCIIObject o; unsigned u[sizeof(PyASCIIObject) / 4]; } x = {0}; x.o.state.kind = 1;"
        " __builtin_ctz(x.u[offsetof(PyASCIIObject, state) / 4]); })",
    ),
    # whether there is such a thing
    "heap_frames": ("0 * sizeof(_PyInterpreterFrame)", "1"),
    "long_tag": ("0 * sizeof(((PyLongObject *)0)->long_value) + 1", "0"),
    "inline_values": ("0 * Py_TPFLAGS_INLINE_VALUES + 1", "0"),
    "values_before_object": (
        "0 * (long)&_PyObject_ValuesPointer + 1", "0 * MANAGED_DICT_OFFSET", "0 * (long)&_PyObject_DictOrValuesPointer",
    ),
    "dk_log2": ("0 * sizeof(((PyDictKeysObject *)0)->dk_log2_size) + 1", "0"),
}  # fmt: skip

#: Made of several measurements: co_local_names of these three, line_table of which table there is.
LOCAL_NAMES = ("co_varnames", "co_cellvars", "co_freevars")
DERIVED = ("co_local_names", "line_table")

#: Fields that no header tells, and where they stand in CPython's sources.
ELSEWHERE: Dict[str, str] = {
    **dict.fromkeys(("fut_state",), "FutureObj in Modules/_asynciomodule.c"),
    **dict.fromkeys(
        (
            "task_fut_waiter",
            "task_coro",
            "task_name",
            "task_node",
            "task_must_cancel",
            "task_must_cancel_bit",
            "task_cancels",
        ),
        "TaskObj in Modules/_asynciomodule.c",
    ),
    "instr_unit": "the use of f_lasti in Python/ceval.c",
}

INCLUDES = (
    "Python.h", "frameobject.h", "structmember.h", "code.h", "genobject.h", "internal/pycore_runtime.h",
    "internal/pycore_interp.h", "internal/pycore_pystate.h", "internal/pycore_tstate.h", "internal/pycore_gil.h",
    "internal/pycore_frame.h", "internal/pycore_interpframe.h", "internal/pycore_interpframe_structs.h",
    "internal/pycore_genobject.h", "internal/pycore_code.h", "internal/pycore_dict.h", "internal/pycore_object.h",
    "internal/pycore_typeobject.h", "internal/pycore_stackref.h", "internal/pycore_ceval.h",
)  # fmt: skip

#: Before 3.13 there is no free-threaded build, and no published offsets.
FIRST_FREE_THREADED = FIRST_PUBLISHED = (3, 13)


class Refused(Exception):
    """What is missing, in one sentence for the person at the terminal."""


class Headers(NamedTuple):
    """An include directory, and the directory of pyconfig.h, which some distributions keep apart."""

    folder: Path
    config: Path


class Section(NamedTuple):
    """A section of ``_Py_DebugOffsets`` and its words."""

    name: str
    words: Tuple[str, ...]


# headers


def headers_at(folder: Path) -> Headers:
    """Return the headers of an include directory. Raises Refused unless it has Python.h and the internal ones."""
    folder = folder.resolve()
    for part in ("Python.h", "patchlevel.h", "internal/pycore_pystate.h"):
        if not (folder / part).exists():
            raise Refused(f"{folder} has no {part}: install the headers of that Python (python3.X-dev)")
    apart = sorted(folder.parent.glob(f"*/{folder.name}/pyconfig.h"))
    return Headers(folder, apart[0].parent if apart else folder)


def headers_of(python: str) -> Headers:
    """Return the headers of an interpreter: X.Y, an id of ``make interpreters``, or a path. Raises Refused."""
    path: Optional[str] = python
    if python in wanted.BY_ID:
        found = wanted.find(wanted.BY_ID[python])
        path = found.path if found is not None else None
    elif os.sep not in python:
        path = shutil.which(python) or shutil.which(f"python{python}")
    if path is None or not os.access(path, os.X_OK):
        raise Refused(f"there is no Python {python} here: give its path, or --headers")
    question = "import sysconfig; print(sysconfig.get_path('include'))"
    done = subprocess.run([path, "-I", "-c", question], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise Refused(f"{path} does not run: {done.stderr.strip() or done.returncode}")
    return headers_at(Path(done.stdout.strip()))


def version_of(headers: Headers) -> Tuple[int, int, int]:
    """Return major, minor and micro version. Raises Refused."""
    text = (headers.folder / "patchlevel.h").read_text("utf-8", "replace")
    found = [re.search(rf"#define\s+PY_{part}_VERSION\s+(\d+)", text) for part in ("MAJOR", "MINOR", "MICRO")]
    numbers = [int(match.group(1)) for match in found if match]
    if len(numbers) != 3:
        raise Refused(f"{headers.folder}/patchlevel.h does not tell the version")
    return numbers[0], numbers[1], numbers[2]


def published_shape(headers: Headers) -> Tuple[Section, ...]:
    """Return the sections of ``_Py_DebugOffsets``; none before 3.13."""
    for name in ("pycore_debug_offsets.h", "pycore_runtime.h"):
        path = headers.folder / "internal" / name
        if path.exists():
            sections = parse_shape(path.read_text("utf-8", "replace"))
            if sections:
                return sections
    return ()


def parse_shape(text: str) -> Tuple[Section, ...]:
    """Parse the declaration of ``_Py_DebugOffsets``: a struct of structs of uint64_t; none if it is not there."""
    body = re.search(r"typedef struct _Py_DebugOffsets \{(.*?)\n\} _Py_DebugOffsets;", text, re.S)
    if body is None:
        return ()
    declared = re.sub(r"//[^\n]*|/\*.*?\*/", "", body.group(1), flags=re.S)
    return tuple(
        Section(name, tuple(re.findall(r"\buint64_t\s+(\w+)\s*;", inside)))
        for inside, name in re.findall(r"struct\s*\w*\s*\{([^{}]*)\}\s*(\w+)\s*;", declared)
    )


# measuring


def candidates() -> List[Tuple[str, str]]:
    """List (field, C expression) in order of preference."""
    found = [
        (field, "offsetof({}, {})".format(*place.split(".", 1)))
        for field, places in OFFSETS.items()
        for place in places.split()
    ]
    found += [(name, f"offsetof(PyCodeObject, {name})") for name in LOCAL_NAMES]
    found += [("co_lnotab", "offsetof(PyCodeObject, co_lnotab)")]
    return found + [(field, one) for field, expressions in EXPRESSIONS.items() for one in expressions]


def program(expressions: Sequence[Tuple[str, str]], free_threaded: bool) -> str:
    """Compose the C program: a function per expression, each on a line of a file named ``expression``."""
    lines = [
        "#define Py_BUILD_CORE 1",
        "#include <pyconfig.h>",
        "#undef Py_DEBUG",
        "#undef Py_TRACE_REFS",
        "#undef Py_GIL_DISABLED",
        "#define Py_GIL_DISABLED 1" if free_threaded else "",
        f"#define FREE_THREADED {int(free_threaded)}",
        "#include <stddef.h>",
        "#include <stdio.h>",
    ]
    for name in INCLUDES:
        lines += [f"#if __has_include(<{name}>)", f"#include <{name}>", "#endif"]
    numbers = range(1, len(expressions) + 1)
    for number, (_, expression) in zip(numbers, expressions):
        lines += [f'#line {number} "expression"', f"static long e{number}(void) {{ return (long)({expression}); }}"]
    prints = "".join(f' printf("{number} %ld\\n", e{number}());' for number in numbers)
    return "\n".join([*lines, f"int main(void) {{{prints} return 0; }}", ""])


def errors_of(messages: str) -> Tuple[List[int], List[str]]:
    """Split a compiler's messages: numbers of the expressions in error, and errors elsewhere."""
    numbers, elsewhere = set(), []
    for line in messages.splitlines():
        inside = re.match(r"expression:(\d+):\d+: (?:fatal )?error: ", line)
        if inside:
            numbers.add(int(inside.group(1)))
        elif re.search(r": (?:fatal )?error: ", line):
            elsewhere.append(line)
    return sorted(numbers), elsewhere


def compiler() -> str:
    """Return the path of a C compiler: $CC, cc, gcc or clang. Raises Refused."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        found = name and shutil.which(name)
        if found:
            return found
    raise Refused("a C compiler is needed to measure headers, and there is none: install gcc, or set CC")


def measure(headers: Headers, free_threaded: bool = False) -> Row:
    """Return what the headers tell: field → value. Raises Refused."""
    cc, tried = compiler(), candidates()
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "offsets.c", Path(folder) / "offsets"
        includes = [
            headers.config,
            headers.folder,
            headers.folder / "internal",
            headers.folder / "internal" / "mimalloc",
        ]
        command = [cc, "-w", "-O1", "-std=gnu11", "-fmax-errors=0", *(f"-I{path}" for path in includes)]
        command += ["-idirafter", str(headers.folder.parent), str(source)]

        def compile_with(*arguments: str) -> Tuple[int, List[int], List[str]]:
            source.write_text(program(tried, free_threaded), "utf-8")
            done = subprocess.run(
                [*command, *arguments],
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
                env={**os.environ, "LC_ALL": "C"},
            )
            return done.returncode, *errors_of(done.stderr)

        _, absent, elsewhere = compile_with("-fsyntax-only")
        if elsewhere:
            raise Refused(f"{headers.folder} does not compile: {elsewhere[0]}")
        tried = [one for number, one in enumerate(tried, 1) if number not in absent]
        status, wrong, elsewhere = compile_with("-o", str(built))
        if status:
            raise Refused(f"the program that measures does not link with {cc}: {(elsewhere or wrong or ['?'])[0]}")
        printed = subprocess.run([str(built)], capture_output=True, text=True, timeout=60, check=True).stdout
    return told(tried, printed)


def told(tried: Sequence[Tuple[str, str]], printed: str) -> Row:
    """Return field → value from the program's output: lines of an expression's number and its value."""
    measured: Dict[str, int] = {}
    for line in printed.splitlines():
        number, value = line.split()
        measured.setdefault(tried[int(number) - 1][0], int(value))
    kinds = {field.name: field.type for field in fields(Layout)}
    row: Row = {field: measured.get(field, -1) for field in OFFSETS}
    row.update({field: measured[field] for field in EXPRESSIONS if field in measured})
    row.update({name: bool(value) for name, value in row.items() if kinds[name] in (bool, "bool")})
    row["co_local_names"] = tuple(measured[name] for name in LOCAL_NAMES if name in measured)
    old = "lnotab" if "co_lnotab" in measured else "ranges"
    row["line_table"] = "locations" if row["co_exceptiontable"] != -1 else old
    return row


# rows


def row_for(version: Version, free_threaded: bool) -> Optional[Layout]:
    """Return the row that is there."""
    return (releases.FREE_THREADED if free_threaded else releases.LAYOUTS).get(version)


def untold(row: Row) -> Dict[str, str]:
    """Map each field that the headers do not tell to where it is found."""
    unknown = "not under any known name; the release may have no such thing"
    return {
        field.name: ELSEWHERE.get(field.name, unknown)
        for field in fields(Layout)
        if field.name != "version" and field.name not in row
    }


def differences(row: Row, layout: Layout) -> List[str]:
    """Compose a line for each field that the headers tell differently."""
    return [
        f"{field.name}: the row has {getattr(layout, field.name)}, the headers say {row[field.name]}"
        for field in fields(Layout)
        if field.name in row and row[field.name] != getattr(layout, field.name)
    ]


def predecessor(version: Version, row: Row) -> Optional[Version]:
    """Return the newest release before that one whose row is in the same file; None if this begins the file."""
    before = [
        minor
        for minor, layout in releases.LAYOUTS.items()
        if minor < version and layout.heap_frames == row["heap_frames"]
    ]
    return max(before, default=None)


def entries(row: Row, base: Optional[Layout]) -> Row:
    """Return what a row states: what differs from its predecessor's; without one, all that has no default or another."""
    stated: Row = {}
    for field in fields(Layout):
        if field.name not in row:
            continue
        known = field.default if base is None else getattr(base, field.name)
        if known is MISSING or row[field.name] != known:
            stated[field.name] = row[field.name]
    return stated


def formatted(stated: Row, indent: int) -> str:
    """Format ``name=value`` entries, a line or more for each struct, within 120 columns."""
    lines: List[str] = []
    group = None
    for name, value in stated.items():
        entry, prefix = f"{name}={value!r},".replace("'", '"'), name.split("_")[0]
        if prefix == group and indent + len(lines[-1]) + 1 + len(entry) <= 120:
            lines[-1] += f" {entry}"
        else:
            lines.append(entry)
        group = prefix
    return "\n".join(" " * indent + line for line in lines)


def name_of(version: Version) -> str:
    """Return the name of a row: ``_V313``."""
    return f"_V{version[0]}{version[1]:02}"


def paste(version: Version, row: Row) -> str:
    """Format the row of a release, on top of its predecessor's."""
    before = predecessor(version, row)
    if before is None:
        body = formatted(entries(row, None), 4)
        return f"{name_of(version)} = dict(\n    version={version},\n{body}\n)  # fmt: skip"
    body = formatted(entries(row, releases.LAYOUTS[before]), 8)
    stated = f"        version={version},\n{body}".rstrip()
    return (
        f"{name_of(version)} = {{\n    **{name_of(before)},\n    **dict(\n{stated}\n    ),\n}}  # fmt: skip\n\n"
        f"    {version}: Layout(**{name_of(version)}),  # type: ignore[arg-type]"
    )


def paste_free_threaded(version: Version, default: Row, row: Row) -> str:
    """Format the entry of ``_FREE_THREADED``: what does not follow from the default build's row."""
    base = releases.LAYOUTS.get(version) or releases.LAYOUTS[max(releases.LAYOUTS)]
    merged = {**{field.name: getattr(base, field.name) for field in fields(Layout)}, **default, "version": version}
    derived = releases.derived(Layout(**merged), {})
    return f"    {version}: dict(\n{formatted(entries(row, derived), 8)}\n    ),"


# what is published


def from_rows(version: Version) -> List[str]:
    """List the fields that the runtime does not publish; before 3.13, all."""
    shape = debugoffsets.SHAPES[version if version in debugoffsets.SHAPES else max(debugoffsets.SHAPES)]
    published = set() if version < FIRST_PUBLISHED else debugoffsets.published(shape)
    return [field.name for field in fields(Layout) if field.name != "version" and field.name not in published]


def shape_differences(version: Version, sections: Sequence[Section]) -> List[str]:
    """Compare the number of words of each section with the row of ``SHAPES``, which may leave out the last sections."""
    known = debugoffsets.SHAPES.get(version)
    if known is None:
        return [f"SHAPES has no row for {version[0]}.{version[1]}"] if sections else []
    said = []
    for (name, words), section in zip(known, sections):
        if len(words.split()) != len(section.words) and (name, words) != known[-1]:
            said.append(
                f"SHAPES: {name} has {len(words.split())} words, the headers' {section.name} {len(section.words)}"
            )
    if len(known) > len(sections):
        said.append(f"SHAPES has {len(known)} sections, the headers {len(sections)}")
    return said


# the command


def show(headers: Headers) -> None:
    """Print the rows, what is not in the headers, and what the runtime publishes."""
    full = version_of(headers)
    version, number = full[:2], ".".join(map(str, full))
    row = measure(headers)
    print(f"# CPython {number}, {headers.folder}\n{paste(version, row)}")
    if version >= FIRST_FREE_THREADED:
        print(
            f"\n# its free-threaded build, in _FREE_THREADED\n{paste_free_threaded(version, row, measure(headers, True))}"
        )
    before = predecessor(version, row)
    taken = "add them by hand" if before is None else f"the row above takes them over from {before[0]}.{before[1]}"
    print(f"\n# Not in the headers; {taken}:")
    for field, where in untold(row).items():
        print(f"#   {field}: {where}")
    sections = published_shape(headers)
    if sections:
        used = [field for field in from_rows(version) if row.get(field) not in (-1, False, ())]
        print("\n# _Py_DebugOffsets, for SHAPES in debugoffsets.py (with its names for sections and words):")
        for section in sections:
            print(f'#   ("{section.name}", "{" ".join(section.words)}"),')
        print(f"#\n# The runtime publishes the rest; from the row come:\n{commented(used)}")


def commented(names: Sequence[str]) -> str:
    """Format names as comment lines within 120 columns."""
    lines = ["#  "]
    for name in names:
        if len(lines[-1]) + 1 + len(name) > 120:
            lines.append("#  ")
        lines[-1] += f" {name}"
    return "\n".join(lines)


def check(headers: Headers) -> int:
    """Print a line for each difference to the rows that are there; return how many."""
    full = version_of(headers)
    version = full[:2]
    said = shape_differences(version, published_shape(headers))
    for free_threaded in (False, True) if version >= FIRST_FREE_THREADED else (False,):
        name = f"{version[0]}.{version[1]}{'t' if free_threaded else ''}"
        layout = row_for(version, free_threaded)
        if layout is None:
            said.append(f"{name}: there is no row")
        else:
            said += [f"{name}: {line}" for line in differences(measure(headers, free_threaded), layout)]
    print("\n".join(said) or f"the rows agree with the headers of {'.'.join(map(str, full))}")
    return len(said)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.offsets", description=(__doc__ or "").split("\n\n", 1)[0])
    parser.add_argument("--headers", metavar="DIR", type=Path, help="an include directory, with Python.h")
    parser.add_argument(
        "--python", metavar="X.Y|PATH", default=sys.executable, help="the interpreter whose headers are meant"
    )
    parser.add_argument("--check", action="store_true", help="compare with the rows; print what differs")
    chosen = parser.parse_args(arguments)
    try:
        headers = headers_at(chosen.headers) if chosen.headers else headers_of(chosen.python)
        if chosen.check:
            return 1 if check(headers) else 0
        show(headers)
    except Refused as exc:
        print(f"offsets: {exc}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
