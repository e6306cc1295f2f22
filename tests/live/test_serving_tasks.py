"""Tasks that serve connections: which descriptors the variables of their frames lead to, on every interpreter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..support.diagnosing import capture_pid
from ..support.interpreters import Program, matrix, old_and_new

pytestmark = pytest.mark.live

SERVER = """
import asyncio

class Gate:
    def __init__(self): self.opened, self.known = asyncio.Event(), {}

    async def by_stream(self, reader, writer):
        self.known[writer] = 1
        await reader.readline()
        await self.opened.wait()  # waits for others
        writer.write(b"done")

class Talk(asyncio.Protocol):
    def __init__(self, gate): self.gate = gate
    def connection_made(self, transport): self.transport = transport
    def data_received(self, data): self.task = asyncio.ensure_future(handle(self.gate, self.answer))
    def answer(self, data): self.transport.write(data)

async def handle(gate, answer):
    await gate.opened.wait()
    answer(b"done")

async def beside(gate):
    await gate.opened.wait()

async def ask(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"please" + bytes([10]))
    await reader.read(4)

async def main():
    gate = Gate()
    one = await asyncio.start_server(gate.by_stream, "127.0.0.1", 0)
    two = await asyncio.get_running_loop().create_server(lambda: Talk(gate), "127.0.0.1", 0)
    other = asyncio.ensure_future(beside(gate))
    asks = [asyncio.ensure_future(ask(s.sockets[0].getsockname()[1])) for s in (one, two)]
    asyncio.get_running_loop().call_later(0.5, lambda: print("ready", flush=True))
    await asyncio.gather(*asks)

asyncio.run(main())
"""


@pytest.mark.parametrize("python", matrix())
def test_a_client_waits_for_the_task_that_serves_it(python: str, tmp_path: Path) -> None:
    """Behind a stream, and behind a method of its protocol; a registry of all connections leads to none of them."""
    with Program(python, SERVER, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path)
        line = program.line_of("waits for others")
    (process,) = json.loads((tmp_path / "bundle" / "evidence.json").read_text())["processes"]
    tasks = {task["id"]: task for task in process["tasks"]}
    serving = {task["stack"][-1]["function"]: len(task["serves"]) for task in tasks.values() if task["stack"]}
    assert serving == {"by_stream": 1, "handle": 1, "beside": 0, "ask": 1, "main": 0}
    named = [w["task"] for r in process["resources"] if r["kind"] == "socket" for w in r["wakers"] if w["task"]]
    assert {tasks[each]["stack"][-1]["function"] for each in named} == {"by_stream", "handle"}
    assert line in [culprit["line"] for culprit in report["findings"][0]["culprits"]]


IN_TURN = """
import threading, time
from xmlrpc.client import ServerProxy
from xmlrpc.server import SimpleXMLRPCServer
class Prices:
    def quote(self, sku): return 100 - stock.level(sku)  # asks-stock
    def base(self, sku): return 42
class Stock:
    def level(self, sku): return 7 if prices.base(sku) < 50 else 3  # asks-prices
def serve(instance):
    server = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)
    server.register_instance(instance)
    threading.Thread(target=server.serve_forever, name=type(instance).__name__, daemon=True).start()
    return "http://127.0.0.1:%d" % server.server_address[1]
where = serve(Prices())
prices, stock = ServerProxy(where), ServerProxy(serve(Stock()))
def ready():
    time.sleep(0.5)
    print("ready", flush=True)
threading.Thread(target=ready, daemon=True).start()
ServerProxy(where).quote("A-1")
"""


@pytest.mark.parametrize("python", old_and_new())
def test_a_connection_that_is_not_accepted_waits_for_the_thread_that_has_the_listening_socket(
    python: str, tmp_path: Path
) -> None:
    """It is in a request of its own: two servers of a process wait for each other's answers."""
    with Program(python, IN_TURN, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.5")
    first = report["findings"][0]
    assert (first["pattern"], first["confidence"]) == ("network-wait", "likely")
    lines = IN_TURN.splitlines()
    wanted = {n for n, text in enumerate(lines, 1) if text.endswith(("# asks-stock", "# asks-prices"))}
    assert {culprit["line"] for culprit in first["culprits"]} == wanted
