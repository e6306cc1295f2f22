"""Library releases that fix the defect behind a finding: code of a library is best changed by an upgrade.

Each row cites the project's own changelog, issue or advisory; defects without such a source are not listed. Evidence
does not record the installed release, so the advice is conditional on it.
"""

from __future__ import annotations

from typing import Iterator, List, NamedTuple, Sequence, Set, Tuple, Union

from ...evidence import Evidence
from ...findings import Culprit, Template, Text, Victim

_ADVICE = Template("{package} {release} {what}: upgrade, if yours is older.")


class Fixed(NamedTuple):
    """A defect of a library, the findings that it causes, and the first release without it."""

    patterns: Tuple[str, ...]  # ids of patterns that may report the defect
    file: str  # suffix of the path of the library's file
    functions: Tuple[str, ...]  # (): any function of the file
    package: str
    release: str  # the first with the fix
    what: str  # its behaviour since the fix, as a predicate: "no longer …"
    reference: str

    @property
    def advice(self) -> Text:
        """Return the advice to upgrade, as a sentence."""
        return _ADVICE(package=self.package, release=self.release, what=self.what)


#: Ordered by package.
TABLE = (
    Fixed(
        ("future-never-resolved", "pool-exhausted"), "aiohttp/connector.py", ("connect",), "aiohttp", "3.10.11",
        "no longer loses a free connection when the waiter that it was offered to is cancelled",
        "https://github.com/aio-libs/aiohttp/issues/9670",
    ),
    Fixed(
        ("orphaned-lock", "future-never-resolved", "async-deadlock"), "anyio/_core/_synchronization.py", ("acquire",),
        "anyio", "3.5.0", "releases a lock when the task that acquires it is cancelled at that moment",
        "https://github.com/agronholm/anyio/issues/398",
    ),
    Fixed(
        ("executor-self-deadlock",), "asgiref/sync.py", (), "asgiref", "3.4.0",
        "raises an error where sync_to_async is called from within itself, instead of waiting forever",
        "https://github.com/django/asgiref/issues/249",
    ),
    Fixed(
        ("python-busy-loop",), "jc/parsers/xrandr.py", (), "jc", "1.24.0", "no longer loops over a line that it cannot parse",
        "https://github.com/kellyjonbrazil/jc/issues/490",
    ),
    Fixed(
        ("fork-inherited-lock",), "loguru/_handler.py", (), "loguru", "0.5.0",
        "no longer deadlocks when a process is forked while a thread logs",
        "https://github.com/Delgan/loguru/issues/231",
    ),
    Fixed(
        ("finalizer-deadlock", "self-deadlock"), "prometheus_client/gc_collector.py", (), "prometheus_client", "0.6.0",
        "no longer has this deadlock in its metrics about the garbage collector",
        "https://github.com/prometheus/client_python/pull/371",
    ),
    Fixed(
        ("python-busy-loop",), "PyPDF2/pdf.py", ("_readInlineImage",), "PyPDF2", "1.27.5",
        "notices the end of the file within an inline image",
        "https://github.com/py-pdf/pypdf/security/advisories/GHSA-xcjx-m2pj-8g79",
    ),
    Fixed(
        ("lock-contention", "lock-order-deadlock"), "functools.py", ("__get__",), "Python", "3.12",
        "no longer has the lock in functools.cached_property that all instances of the class shared",
        "https://docs.python.org/3/library/functools.html#functools.cached_property",
    ),
    Fixed(
        ("regex-backtracking", "gil-held-by-native"), "multipart/multipart.py", ("parse_options_header",),
        "python-multipart", "0.0.7", "parses the header without the pattern that backtracks (CVE-2024-24762)",
        "https://github.com/advisories/GHSA-2jv5-9r88-3w3p",
    ),
    Fixed(
        ("gil-thrash", "busy-event-loop", "gil-contention"), "starlette/testclient.py", ("_asgi_receive",), "starlette",
        "0.38.0", "waits for the message instead of polling for it with sleep(0)",
        "https://github.com/encode/starlette/pull/2597",
    ),
    Fixed(
        ("pool-exhausted", "missed-wakeup"), "urllib3/connectionpool.py", ("urlopen",), "urllib3", "1.22",
        "returns a connection before it retries or follows a redirect", "https://github.com/urllib3/urllib3/issues/1167",
    ),
    Fixed(
        ("import-deadlock", "lock-order-deadlock"), "wrapt/importer.py", (), "wrapt", "1.15.0",
        "no longer deadlocks when a post-import hook and another thread both import something",
        "https://wrapt.readthedocs.io/en/latest/changes.html#version-1-15-0",
    ),
)  # fmt: skip


def fixes(
    evidence: Evidence, pattern: str, culprits: Sequence[Culprit], victims: Sequence[Victim]
) -> Tuple[Fixed, ...]:
    """Return the rows that apply to a finding: the library's function is a culprit, or on the stack of a culprit or victim."""
    rows = [row for row in TABLE if pattern in row.patterns]
    if not rows:
        return ()
    blamed = {(c.file, c.function) for c in culprits} | set(_on_stacks(evidence, _named(culprits, victims)))
    return tuple(row for row in rows if any(_meets(row, file, function) for file, function in blamed))


def _named(culprits: Sequence[Culprit], victims: Sequence[Victim]) -> Set[Tuple[int, object]]:
    """Return the (pid, tid) and (pid, task) pairs of culprits and victims."""
    who: List[Union[Culprit, Victim]] = [*culprits, *victims]
    return {(one.pid, one.tid) for one in who} | {(one.pid, one.task) for one in who}


def _on_stacks(evidence: Evidence, named: Set[Tuple[int, object]]) -> Iterator[Tuple[str, str]]:
    """Yield (file, function) of every frame of the named threads and tasks."""
    for process in evidence.processes:
        stacks = [thread.python for thread in process.threads if (process.pid, thread.tid) in named]
        stacks += [task.stack for task in process.tasks if (process.pid, task.name or task.id) in named]
        yield from ((frame.file, frame.function) for frames in stacks for frame in frames)


def _meets(row: Fixed, file: str, function: str) -> bool:
    """Return whether a row covers a function of a file."""
    return f"/{file}".endswith("/" + row.file) and (not row.functions or function in row.functions)
