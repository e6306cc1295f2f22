"""Snippets of event loops and their tasks."""

from __future__ import annotations

from typing import Dict

from .snippet import Snippet, of

SNIPPETS: Dict[str, Snippet] = {
    "busy-event-loop": of(
        """
async def receive(self):
    while self.messages.empty():
        await asyncio.sleep(0)  # the loop never sleeps
    return self.messages.get_nowait()
""",
        """
async def receive(self):
    return await self.messages.get()  # an asyncio.Queue
""",
    ),
    "gil-thrash": of(
        """
def watch(self):
    while not self.done:
        time.sleep(0)  # gives the interpreter lock away, and wants it back at once
""",
        """
def watch(self):
    self.done.wait()  # a threading.Event
""",
    ),
    "blocking-call-in-coroutine": of(
        """
async def quote(request):
    answer = requests.get(URL, timeout=10)  # nothing else runs on this loop meanwhile
    return answer.json()
""",
        """
async def quote(request):
    answer = await asyncio.to_thread(requests.get, URL, timeout=10)  # before 3.9: loop.run_in_executor
    return answer.json()
""",
    ),
    "event-loop-starvation": of(
        """
await asyncio.gather(*(evaluate(row) for row in rows))  # 100,000 tasks that are all ready
""",
        """
async def worker():
    while rows:
        await evaluate(rows.pop())
        await asyncio.sleep(0)  # the others' turn


await asyncio.gather(*(worker() for _ in range(10)))
""",
    ),
    "unbounded-queue": of(
        """
jobs = asyncio.Queue()


async def read(source):
    async for row in source:
        await jobs.put(row)  # never waits: a queue without a bound takes everything
""",
        """
jobs = asyncio.Queue(maxsize=1000)


async def read(source):
    async for row in source:
        await jobs.put(row)  # waits for the consumer when 1,000 are in it
""",
    ),
    "future-never-resolved": of(
        """
async def ask(self, question):
    reply = self.replies[question.id] = asyncio.get_running_loop().create_future()
    await self.send(question)
    return await reply


def closed(self):
    self.replies.clear()  # who waits for one is never told
""",
        """
async def ask(self, question):
    reply = self.replies[question.id] = asyncio.get_running_loop().create_future()
    await self.send(question)
    return await asyncio.wait_for(reply, timeout=30)


def closed(self):
    for reply in self.replies.values():
        reply.set_exception(ConnectionError("closed"))
    self.replies.clear()
""",
    ),
    "async-deadlock": of(
        """
async def transfer(source, target):
    async with source.lock:
        async with target.lock:  # another task goes the other way round
            await move(source, target)
""",
        """
async def transfer(source, target):
    first, second = sorted((source, target), key=lambda account: account.number)
    async with first.lock, second.lock:  # one order for everybody
        await move(source, target)
""",
    ),
    "lost-cancellation": of(
        """
async def serve(queue):
    while True:
        try:
            await handle(await queue.get())
        except BaseException:  # CancelledError, too: the loop goes on
            log.exception("job failed")
""",
        """
async def serve(queue):
    while True:
        try:
            await handle(await queue.get())
        except Exception:  # CancelledError is none
            log.exception("job failed")
""",
    ),
    "loop-not-woken": of(
        """
def on_message(client, topic, payload):  # called in the client's own thread
    queue.put_nowait(payload)  # the loop sleeps on
""",
        """
def on_message(client, topic, payload):
    loop.call_soon_threadsafe(queue.put_nowait, payload)
""",
    ),
    "loop-self-wait": of(
        """
def price(self, item):  # called on the loop's own thread
    future = asyncio.run_coroutine_threadsafe(self.fetch(item), self.loop)
    return future.result()  # the loop cannot run what this waits for
""",
        """
async def price(self, item):
    return await self.fetch(item)
""",
    ),
}
