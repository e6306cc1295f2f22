"""Twisted reactors as installed: calls that another thread has left without waking the reactor, and idle ones."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest

from ..corpora.runs import NotRecorded, environment, interpreter
from ..support.diagnosing import assert_leads, capture_pid
from ..support.interpreters import Program
from ..support.required import lacking

pytestmark = pytest.mark.live

RELEASES = pytest.mark.parametrize(("version", "release"), [("3.9", "22.10.0"), ("3.13", "25.5.0")])

#: A thread makes the reactor sleep first, so that the call comes from outside of its turn.
SOURCE = """
import sys, threading, time
from twisted.internet import defer, reactor

def serve(value):
    reactor.callLater(0, reactor.stop)

def compute(answer, asleep):
    asleep.wait()
    if sys.argv[1] == "calls":
        answer.callback(42)
    print("ready", flush=True)

def watch(asleep):
    ident = threading.main_thread().ident
    while sys._current_frames()[ident].f_code.co_name != "doPoll":
        time.sleep(0.01)
    asleep.set()

answer, asleep = defer.Deferred(), threading.Event()
answer.addCallback(serve)
for function, arguments in ((compute, (answer, asleep)), (watch, (asleep,))):
    threading.Thread(target=function, args=arguments, daemon=True).start()
reactor.run()
"""


def installed(version: str, release: str) -> str:
    """Return an interpreter of that version with that release of Twisted; skip if it cannot be had."""
    try:
        return str(environment(interpreter(version), (f"twisted=={release}",)))
    except NotRecorded as exc:
        lacking(str(exc))


@RELEASES
@pytest.mark.parametrize("does", ["calls", "rests"])
def test_calls_that_did_not_wake_the_reactor(version: str, release: str, does: str, tmp_path: Path) -> None:
    """The call, the line that made it and the reactor that slept on; an idle reactor gets no finding."""
    with Program(installed(version, release), SOURCE, tmp_path, does) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.5")
    assert report["verdict"] == ("loop-not-woken" if does == "calls" else None)
    if does == "calls":
        first = report["findings"][0]
        lines = {culprit["line"] for culprit in first["culprits"]}
        assert (first["confidence"], {6, 11} <= lines) == ("proven", True)


#: A call that schedules itself again at once, or after a tenth of a second.
POLLING = """
import sys
from twisted.internet import reactor

class Watch:
    done = False

    def check(self):
        if not self.done:
            reactor.callLater(float(sys.argv[1]), self.check)

reactor.callWhenRunning(Watch().check)
reactor.callWhenRunning(print, "ready", flush=True)
reactor.run()
"""


@RELEASES
@pytest.mark.parametrize(("pause", "expected"), [("0", "busy-event-loop"), ("0.1", None)])
def test_a_reactor_that_spins(version: str, release: str, pause: str, expected: Optional[str], tmp_path: Path) -> None:
    """The function that schedules itself again; one that comes back now and then is no spin."""
    with Program(installed(version, release), POLLING, tmp_path, pause) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.5")
    assert report["verdict"] == expected
    if expected:
        first = report["findings"][0]
        lines = {culprit["line"] for culprit in first["culprits"]}
        assert first["confidence"] == "likely" and lines & {
            8,
            9,
            10,
        }  # its first line where no sample caught it at work


#: Generators and coroutines that wait: for a lock that one has kept, for each other, for a Deferred that its holder has
#: dropped, for an item that nobody is left to put, for what a timer will bring. Nothing refers to some of them but they
#: themselves: the collector would end them.
TASKS = """
import gc, sys
from twisted.internet import defer, reactor, task
gc.disable()

def later(seconds):
    return task.deferLater(reactor, seconds, lambda: None)

class Store:
    def __init__(self):
        self.lock, self.rows, self.saved = defer.DeferredLock(), defer.DeferredQueue(), defer.Deferred()

    @defer.inlineCallbacks
    def write(self, row):
        yield self.lock.acquire()  # kept
        yield later(0.01)
        if row == 1:
            raise ValueError(row)
        self.lock.release()

    @defer.inlineCallbacks
    def move(self, other):
        yield self.lock.acquire()
        try:
            yield later(0.1)
            yield other.lock.acquire()  # circle
            other.lock.release()
        finally:
            self.lock.release()

    async def total(self):
        return await self.rows.get()  # item

    def finish(self):
        self.saved.callback(None)

async def kept():
    store = Store()
    for row in range(3):
        try:
            await store.write(row)
        except ValueError:
            reactor.callLater(0.1, print, "ready", flush=True)

async def circle():
    first, second = Store(), Store()
    reactor.callLater(0.3, print, "ready", flush=True)
    await defer.gatherResults([first.move(second), second.move(first)])

async def item():
    reactor.callLater(0.1, print, "ready", flush=True)
    await defer.ensureDeferred(Store().total())

async def dropped():
    reactor.callLater(0.1, print, "ready", flush=True)
    await defer.Deferred()  # dropped

async def timer():
    store = Store()
    reactor.callLater(600, store.finish)
    reactor.callLater(0.1, print, "ready", flush=True)
    await store.saved

async def timers():
    reactor.callLater(0.1, print, "ready", flush=True)
    await defer.gatherResults([defer.gatherResults([later(600), later(0.01)]), later(0.02)])

reactor.callWhenRunning(lambda: defer.ensureDeferred(globals()[sys.argv[1]]()))
task.LoopingCall(lambda: None).start(0.2)
reactor.run()
"""

STUCK = {
    "kept": ("orphaned-lock", ("proven",)),
    "circle": ("async-deadlock", ("likely", "proven")),
    "item": ("future-never-resolved", ("proven",)),
    "dropped": ("future-never-resolved", ("possible", "likely", "proven")),  # nobody awaits this coroutine itself
}


@RELEASES
@pytest.mark.parametrize("does", [*STUCK, "timer", "timers"])
def test_generators_that_wait_for_deferreds(version: str, release: str, does: str, tmp_path: Path) -> None:
    """Named with the line that waits; what a timer of the reactor will end is possible at most."""
    with Program(installed(version, release), TASKS, tmp_path, does) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.5")
    if does in STUCK:
        assert_leads(report, STUCK[does], TASKS, does)
    else:
        assert all(finding["confidence"] == "possible" for finding in report["findings"])


#: A pool of two threads, each of which asks the reactor for work of the same pool.
POOLED = """
from twisted.internet import defer, reactor, threads

class Index:
    def look_up(self, number):
        return threads.blockingCallFromThread(reactor, self.remote, number)

    def remote(self, number):
        return threads.deferToThread(self.fetch, number)

    def fetch(self, number):
        return number

@defer.inlineCallbacks
def main(index):
    reactor.callLater(0.5, print, "ready", flush=True)
    yield defer.gatherResults([threads.deferToThread(index.look_up, number) for number in range(2)])

reactor.suggestThreadPoolSize(2)
reactor.callWhenRunning(main, Index())
reactor.run()
"""


@RELEASES
def test_a_pool_whose_threads_wait_for_jobs_in_its_queue(version: str, release: str, tmp_path: Path) -> None:
    """The pool's queue is read out of its workers' frames, and its jobs lead to what these wait for."""
    with Program(installed(version, release), POOLED, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.5")
    pool = report["processes"][0]["pools"][0]
    assert (pool["kind"], pool["limit"], len(pool["threads"]), pool["queued"]) == ("twisted.ThreadPool", 2, 2, 2)
    first = report["findings"][0]
    assert (first["pattern"], first["confidence"]) == ("executor-self-deadlock", "proven")
    assert 6 in {culprit["line"] for culprit in first["culprits"]}


#: A listening port and one connection to it, both ends of which the reactor serves.
CONNECTED = """
from twisted.internet import protocol, reactor

class Peer(protocol.Protocol):
    def connectionMade(self):
        if reactor.peers.append(self) is None and len(reactor.peers) == 2:
            reactor.callLater(0, print, "ready", flush=True)

reactor.peers = []
serving, asking = protocol.ServerFactory(), protocol.ClientFactory()
serving.protocol = asking.protocol = Peer
port = reactor.listenTCP(0, serving, interface="127.0.0.1")
reactor.connectTCP("127.0.0.1", port.getHost().port, asking)
reactor.run()
"""


@RELEASES
def test_what_a_reactor_watches(version: str, release: str, tmp_path: Path) -> None:
    """Its listening port and both ends of the connection, without the descriptors that only wake it."""
    with Program(installed(version, release), CONNECTED, tmp_path) as program:
        report = capture_pid(program.pid, tmp_path, "--observe", "0.1")
    loop = report["processes"][0]["loops"][0]
    assert (loop["kind"], loop["watched"], len(loop["descriptors"])) == ("twisted", 3, 3)
    assert report["verdict"] is None
