"""Threads that run exit handlers, and whose code these run."""

from __future__ import annotations

from typing import Optional

import pytest

from postmortem.classify.facts.leaving import hung, leaving
from postmortem.evidence import NativeFrame

from ....support.make import stack, thread

LIBC, LOADER = "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"
ARROW, PYTHON = "/site/libarrow.so.1800", "/usr/lib/libpython3.12.so.1.0"


def c(function: Optional[str], module: Optional[str] = LIBC) -> NativeFrame:
    return NativeFrame(function, module, 3)


@pytest.mark.parametrize(
    ("function", "module", "ended"),
    [
        ("__run_exit_handlers", LIBC, True),
        ("__GI_exit", LIBC, True),
        ("_dl_fini", LOADER, True),
        ("Py_FinalizeEx", PYTHON, False),
        ("exit", ARROW, None),
        ("_exit_group", LIBC, None),
        ("Py_FinalizeEx", ARROW, None),
    ],
)
def test_the_way_out(function: str, module: str, ended: Optional[bool]) -> None:
    """exit() of the C library, its destructors, and the end of the interpreter; not functions of others of that name."""
    found = leaving(thread(1, (c("futex_wait"), c(function, module), c("main", PYTHON))))
    assert (found.ended if found is not None else None) is ended


def test_python_code_above_is_no_exit_handler() -> None:
    """threading._shutdown and callbacks of atexit run while the interpreter still works."""
    assert leaving(thread(1, (c("sem_wait"), *stack("threading._shutdown"), c("Py_FinalizeEx", PYTHON)))) is None


def test_the_handlers_function() -> None:
    """The innermost one of a library, rather than a template of the C++ library; None where the C library is alone."""
    joins = (c("pthread_join"), c("Pool::stop()", ARROW), c("std::shared_ptr<Pool>", ARROW), c("exit"))
    found = leaving(thread(1, joins))
    assert found is not None and found.handler == c("Pool::stop()", ARROW)
    found = leaving(thread(1, (c("pthread_join"), c(None, ARROW), c("exit"))))
    assert found is not None and found.handler == c(None, ARROW)
    found = leaving(thread(1, (c("pthread_cond_destroy"), c("exit"))))
    assert found is not None and found.handler is None


def test_a_thread_that_is_hung_up() -> None:
    """3.14 keeps a thread for ever that wants the GIL after the end."""
    assert hung(thread(2, (c("pause"), c("PyThread_hang_thread", PYTHON))))
    assert not hung(thread(2, (c("pause"),)))
