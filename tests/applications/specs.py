"""Applications with their pinned versions, and the states in which each is captured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Tuple

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class State:
    """State of an application, and the verdict due for it.

    ``accept`` has the patterns that are right; none for an application at rest. In a hang the first culprit must be a
    line of the application marked ``# HANG name``, or, for code that was typed, ``typed_line`` of a file that
    contains ``typed_file``.
    """

    name: str
    does: str
    accept: Tuple[str, ...] = ()
    requests: Tuple[str, ...] = ()  # paths that are requested at once; nobody waits for the answers
    typed: Tuple[str, ...] = ()  # lines typed into the terminal
    typed_file: str = ""
    typed_line: int = 0

    @property
    def idle(self) -> bool:
        return not self.accept


@dataclass(frozen=True)
class Application:
    """Application with its requirements and states.

    ``command`` and ``driver`` may use {python}, {bin}, {port}, {state}, {work}. The driver runs beside the application
    and brings it into the state. The state is reached when the file $READY is there; an idle server without driver is
    ready once it has answered a request.
    """

    id: str
    title: str
    distribution: str  # whose version the page names; "" for the interpreter itself
    python: str
    command: Tuple[str, ...]
    states: Tuple[State, ...]
    requirements: Tuple[str, ...] = ()
    services: Tuple[str, ...] = ()
    driver: Tuple[str, ...] = ()
    http: bool = False
    terminal: bool = False

    @property
    def program(self) -> Path:
        """The folder that holds its code."""
        return PROGRAMS / self.id


_BLOCKED_LOOP = ("blocking-call-in-coroutine",)
_OWN_LOOP = ("blocking-call-in-coroutine", "loop-self-wait")
_POOL_IN_ITSELF = ("executor-self-deadlock", "pool-exhausted")
# The code that took the lock is gone: each typed statement runs as code of its own.
_NEVER_RELEASED = ("self-deadlock", "orphaned-lock")
_CIRCLE = ("lock-order-deadlock",)
_TASK_CIRCLE = ("async-deadlock",)
_GREENLET_CIRCLE = ("async-deadlock", "lock-order-deadlock")

APPLICATIONS: Tuple[Application, ...] = (
    Application(
        "gunicorn", "gunicorn gthread", "gunicorn", "3.12",
        ("{bin}/gunicorn", "--worker-class", "gthread", "--threads", "4", "--bind", "127.0.0.1:{port}", "shop:application"),
        (
            State("idle", "waits for requests"),
            State("transfer", "two requests take two locks in opposite order", _CIRCLE, ("/transfer/1/2", "/transfer/2/1")),
            State("rates", "a request reads from a service that never answers", ("network-wait",), ("/rates",)),
        ),
        requirements=("gunicorn==27.0.1",), services=("silent",), http=True,
    ),
    Application(
        "uvicorn", "uvicorn, FastAPI", "uvicorn", "3.13",
        ("{bin}/uvicorn", "--loop", "asyncio", "--port", "{port}", "api:app"),
        (
            State("idle", "waits for requests"),
            State("me", "a coroutine requests its own server with urllib", _OWN_LOOP, ("/me",)),
            State("move", "two requests take two asyncio locks in opposite order", _TASK_CIRCLE, ("/move/1/2", "/move/2/1")),
        ),
        requirements=("uvicorn==0.54.0", "fastapi==0.165.0"), http=True,
    ),
    Application(
        "uvloop", "uvicorn on uvloop", "uvloop", "3.12",
        ("{bin}/uvicorn", "--loop", "uvloop", "--port", "{port}", "api:app"),
        (
            State("idle", "waits for requests"),
            State("nap", "a coroutine calls time.sleep", _BLOCKED_LOOP, ("/nap",)),
            State("fetch", "a coroutine calls requests.get; the service never answers", _BLOCKED_LOOP, ("/fetch",)),
        ),
        requirements=("uvicorn==0.54.0", "uvloop==0.23.0", "starlette==1.10.0", "requests==2.34.2"),
        services=("silent",), http=True,
    ),
    Application(
        "django", "Django runserver", "Django", "3.12",
        ("{python}", "manage.py", "runserver", "127.0.0.1:{port}"),
        (
            State("idle", "waits for requests"),
            State("transfer", "two requests take two locks in opposite order", _CIRCLE, ("/transfer/1/2/", "/transfer/2/1/")),
            State("export", "a request waits for a child whose output nobody reads", ("pipe-deadlock",), ("/export/",)),
        ),
        requirements=("Django==5.2.19",), http=True,
    ),
    Application(
        "gevent", "gevent WSGI", "gevent", "3.11",
        ("{python}", "serve.py"),
        (
            State("idle", "waits for requests"),
            State("spin", "a request loops until another one sets a flag", ("python-busy-loop",), ("/spin",)),
            State("swap", "two requests take two semaphores in opposite order", _GREENLET_CIRCLE, ("/swap/1/2", "/swap/2/1")),
        ),
        requirements=("gevent==26.9.0",), http=True,
    ),
    Application(
        "celery", "celery, prefork, on Redis", "celery", "3.11",
        ("{bin}/celery", "--app", "jobs", "worker", "--concurrency", "2", "--loglevel", "WARNING"),
        (
            State("idle", "waits for jobs"),
            State("parents", "jobs in all workers wait for jobs of the same queue", _POOL_IN_ITSELF),
            State("fetch", "a job reads from a service that never answers", ("network-wait",)),
        ),
        requirements=("celery[redis]==5.7.0",), services=("redis", "silent"), driver=("{python}", "submit.py", "{state}"),
    ),
    Application(
        "ipykernel", "ipykernel", "ipykernel", "3.12",
        ("{python}", "-m", "ipykernel_launcher", "-f", "{work}/kernel.json"),
        (
            State("idle", "waits for a cell"),
            State("lock", "a cell takes a lock twice", _NEVER_RELEASED, typed_file="ipykernel_", typed_line=4),
            State("input", "a cell asks for input", ("stdin-wait",), typed_file="ipykernel_", typed_line=3),
        ),
        requirements=("ipykernel==7.4.0", "jupyter_client==8.10.0"), driver=("{python}", "cells.py", "{state}"),
    ),
    Application(
        "psycopg2", "psycopg 2 on PostgreSQL", "psycopg2-binary", "3.11",
        ("{python}", "client.py", "{state}"),
        (
            State("idle", "listens for notifications"),
            State("row", "a second connection updates a row that the first one has locked", ("database-lock-wait",)),
            State("alter", "ALTER TABLE waits for another process's open transaction", ("database-lock-wait",)),
        ),
        requirements=("psycopg2-binary==2.9.13",), services=("postgresql",),
    ),
    Application(
        "psycopg3", "psycopg 3 on PostgreSQL", "psycopg", "3.13",
        ("{python}", "client.py", "{state}"),
        (
            State("idle", "listens for notifications"),
            State("row", "a second connection updates a row that the first one has locked", ("database-lock-wait",)),
            State("pool", "takes a second connection from a pool of one", ("pool-exhausted",)),
        ),
        requirements=("psycopg[binary,pool]==3.3.9",), services=("postgresql",),
    ),
    Application(
        "sqlalchemy", "SQLAlchemy on PostgreSQL", "SQLAlchemy", "3.12",
        ("{python}", "worker.py", "{state}"),
        (
            State("idle", "asks for new rows every two seconds"),
            State("pool", "opens a second session in a thread; the pool has one connection", ("pool-exhausted",)),
            State("row", "a second session updates a row that the first one has locked", ("database-lock-wait",)),
        ),
        requirements=("SQLAlchemy==2.1.9", "psycopg[binary]==3.3.9"), services=("postgresql",),
    ),
    Application(
        "xdist", "pytest-xdist", "pytest-xdist", "3.12",
        ("{python}", "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", "-k", "{state}", "suite.py"),
        (
            State("idle", "runs many short tests"),
            State("transfer", "threads of a test take two locks in opposite order", _CIRCLE),
            State("drain", "a test joins a queue whose consumer has died", ("missed-wakeup",)),
        ),
        requirements=("pytest-xdist==3.8.0",),
    ),
    Application(
        "trio", "trio", "trio", "3.12",
        ("{python}", "server.py", "{state}"),
        (
            State("idle", "waits for connections"),
            State("swap", "two tasks take two locks in opposite order", _TASK_CIRCLE),
            State("channel", "reads a channel whose sender is kept open", ("future-never-resolved",)),
        ),
        requirements=("trio==0.35.0",),
    ),
    Application(
        "dask", "dask.distributed", "distributed", "3.12",
        ("{python}", "cluster.py", "{state}"),
        (
            State("idle", "a client looks at its idle cluster every second"),
            State("nested", "tasks in all threads of a worker wait for tasks that they submitted", _POOL_IN_ITSELF),
            State("lock", "a task takes a lock twice", ("self-deadlock",)),
        ),
        requirements=("distributed==2026.8.0",),
    ),
    Application(
        "scrapy", "Scrapy", "Scrapy", "3.12",
        ("{bin}/scrapy", "runspider", "--nolog", "spider.py"),
        (
            State("idle", "a spider waits for work"),
            State("fetch", "a callback calls requests.get; the service never answers", _BLOCKED_LOOP),
            State("pipeline", "an item pipeline awaits a Deferred that nobody fires", ("future-never-resolved",)),
        ),
        requirements=("Scrapy==2.19.0", "requests==2.34.2"), services=("silent", "web"),
    ),
    Application(
        "tk", "a Tk window", "", "3.11",
        ("{python}", "window.py", "{state}"),
        (
            State("idle", "waits for the user"),
            State("join", "a callback joins a thread that changes the window", ("loop-self-wait", "lock-order-deadlock")),
            State("queue", "a callback waits for an item that another callback puts", ("missed-wakeup", "loop-self-wait")),
        ),
        services=("xvfb",),
    ),
    Application(
        "repl", "a REPL on a terminal", "", "3.13",
        ("{python}",),
        (
            State("idle", "waits at its prompt", typed=("import os, pathlib", 'pathlib.Path(os.environ["READY"]).touch()')),
            State(
                "typed", "takes a lock twice, as typed", _NEVER_RELEASED,
                typed=(
                    "import os, pathlib, threading", "l = threading.Lock()",
                    'pathlib.Path(os.environ["READY"]).touch(); l.acquire(); l.acquire()',
                ),
                typed_file="<", typed_line=1,
            ),
            State(
                "imported", "runs a module that waits for a worker that has died", ("missed-wakeup",),
                typed=("import importer", "importer.run()"),
            ),
        ),
        terminal=True,
    ),
)  # fmt: skip
BY_ID: Dict[str, Application] = {application.id: application for application in APPLICATIONS}
