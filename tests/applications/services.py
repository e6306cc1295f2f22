"""Servers that applications need, on free ports and in temporary directories; ended with the run."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

from tests.interpreters.steps import Unavailable, run

_START_S = 60


def free_port() -> int:
    """A TCP port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(done: Callable[[], bool], what: str, limit_s: float = _START_S) -> None:
    """Wait until ``done`` returns true. Raise Unavailable after the limit."""
    end = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > end:
            raise Unavailable(f"{what} within {limit_s:.0f} s")
        time.sleep(0.1)


def answers(port: int) -> bool:
    """Whether something accepts connections there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _program(name: str, package: str, *places: str) -> str:
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *places]))
    if found is None:
        raise Unavailable(f"{name} is not installed: it belongs to Debian's package {package}")
    return found


@contextlib.contextmanager
def _running(command: Sequence[str], log: Path, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            **options,  # type: ignore[call-overload]
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def redis(folder: Path) -> Iterator[Dict[str, str]]:
    """An empty redis-server that keeps nothing."""
    port = free_port()
    program = _program("redis-server", "redis-server")
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with _running(command, folder / "redis.log"):
        until(lambda: answers(port), "redis-server did not answer")
        yield {"REDIS_URL": f"redis://127.0.0.1:{port}/0"}


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[Dict[str, str]]:
    """An empty cluster, under the user postgres if we are root, whom the server refuses."""
    places = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    initdb, server = (_program(name, "postgresql", *places) for name in ("initdb", "postgres"))
    home = Path(tempfile.mkdtemp(prefix="postgresql-"))
    as_user: List[str] = []
    if os.geteuid() == 0:
        as_user = [_program("runuser", "util-linux"), "-u", "postgres", "--"]
        shutil.chown(home, "postgres")
    try:
        data, port = home / "data", free_port()
        run([*as_user, initdb, "-D", str(data), "-U", "tester", "-A", "trust", "--no-sync"], cwd=home)
        options = [f"port={port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={home}", "fsync=off"]
        command = [*as_user, server, "-D", str(data), *(part for option in options for part in ("-c", option))]
        with _running(command, folder / "postgresql.log", cwd=str(home)):
            until(lambda: answers(port), "postgresql did not answer")
            yield {
                "DATABASE_DSN": f"host=127.0.0.1 port={port} user=tester dbname=postgres",
                "DATABASE_URL": f"postgresql+psycopg://tester@127.0.0.1:{port}/postgres",
            }
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def xvfb(folder: Path) -> Iterator[Dict[str, str]]:
    """An X server without a screen."""
    reader, writer = os.pipe()
    command = [_program("Xvfb", "xvfb"), "-displayfd", str(writer), "-screen", "0", "640x480x24", "-nolisten", "tcp"]
    try:
        with _running(command, folder / "xvfb.log", pass_fds=(writer,)):
            os.close(writer)
            display = os.read(reader, 16).decode().strip()
            if not display:
                raise Unavailable("Xvfb did not start")
            yield {"DISPLAY": f":{display}"}
    finally:
        os.close(reader)


@contextlib.contextmanager
def silent(folder: Path) -> Iterator[Dict[str, str]]:
    """A service that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield {"SILENT_URL": f"http://127.0.0.1:{listener.getsockname()[1]}/"}


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html><body>hello</body></html>")

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


@contextlib.contextmanager
def web(folder: Path) -> Iterator[Dict[str, str]]:
    """A web server with one page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield {"WEB_URL": f"http://127.0.0.1:{server.server_address[1]}/"}
        finally:
            server.shutdown()


SERVICES: Dict[str, Callable[[Path], contextlib.AbstractContextManager[Dict[str, str]]]] = {
    "redis": redis, "postgresql": postgresql, "xvfb": xvfb, "silent": silent, "web": web,
}  # fmt: skip


@contextlib.contextmanager
def started(names: Tuple[str, ...], folder: Path) -> Iterator[Dict[str, str]]:
    """All of these services; what the application's environment needs to find them. Raise Unavailable."""
    with contextlib.ExitStack() as stack:
        environment: Dict[str, str] = {}
        for name in names:
            environment.update(stack.enter_context(SERVICES[name](folder)))
        yield environment
