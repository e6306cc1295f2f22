"""Snippets of processes, pipes, sockets and files."""

from __future__ import annotations

from typing import Dict

from .snippet import Snippet, of

SNIPPETS: Dict[str, Snippet] = {
    "pipe-deadlock": of(
        """
child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
child.wait()  # the child fills the pipe, and waits for somebody who reads it
text = child.stdout.read()
""",
        """
child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
text, complaints = child.communicate(timeout=60)  # reads both to their ends, then waits
""",
    ),
    "pipe-never-closed": of(
        """
reading, writing = os.pipe()
child = subprocess.Popen(command, stdout=writing)
text = os.fdopen(reading).read()  # no end: this process has the writing end, too
""",
        """
reading, writing = os.pipe()
child = subprocess.Popen(command, stdout=writing)
os.close(writing)
text = os.fdopen(reading).read()
""",
    ),
    "database-lock-wait": of(
        """
books = sqlite3.connect(path)
books.execute("INSERT INTO shelf VALUES (?, ?)", row)  # begins a transaction
if not is_wanted(row):
    return  # and leaves it open: every other connection waits
books.commit()
""",
        """
with contextlib.closing(sqlite3.connect(path, timeout=5)) as books:
    with books:  # commits, or rolls back on the way of an exception
        if is_wanted(row):
            books.execute("INSERT INTO shelf VALUES (?, ?)", row)
""",
    ),
    "mp-join-before-drain": of(
        """
worker = multiprocessing.Process(target=count, args=(words, results))
worker.start()
worker.join()  # it ends when its results are in the pipe, and that is full
total = results.get()
""",
        """
worker = multiprocessing.Process(target=count, args=(words, results))
worker.start()
total = results.get()
worker.join()
""",
    ),
    "mp-worker-died": of(
        """
with multiprocessing.Pool() as pool:
    tiles = pool.map(draw, squares)  # a worker that is killed takes its work with it, and nobody is told
""",
        """
with concurrent.futures.ProcessPoolExecutor() as pool:
    tiles = list(pool.map(draw, squares))  # raises BrokenProcessPool
""",
    ),
    "semaphore-orphan": of(
        """
worker.terminate()  # while it holds a lock that other processes share
""",
        """
stop.set()  # an Event that the worker looks at between two jobs
worker.join(timeout=30)
""",
    ),
    "child-wait": of(
        """
subprocess.run(["git", "commit", "-m", message])
""",
        """
subprocess.run(["git", "commit", "-m", message], stdin=subprocess.DEVNULL, timeout=60, check=True)
""",
    ),
    "stdin-wait": of(
        """
if input("Overwrite? ") == "y":
    write(path)
""",
        """
if arguments.force or (sys.stdin.isatty() and input("Overwrite? ") == "y"):
    write(path)
""",
    ),
    "network-wait": of(
        """
reply = requests.get(url)
connection = socket.create_connection((host, port))
""",
        """
reply = requests.get(url, timeout=(5, 30))  # to connect, and between two pieces of the answer
connection = socket.create_connection((host, port), timeout=30)
""",
    ),
    "dns-wait": of(
        """
address = socket.getaddrinfo(host, 443)  # has no timeout of its own
""",
        """
looked_up = resolver.submit(socket.getaddrinfo, host, 443)  # a ThreadPoolExecutor
address = looked_up.result(timeout=5)
""",
    ),
    "file-lock-wait": of(
        """
fcntl.flock(ledger, fcntl.LOCK_EX)  # for ever, when its holder hangs
""",
        """
deadline = time.monotonic() + 30
while True:
    try:
        fcntl.flock(ledger, fcntl.LOCK_EX | fcntl.LOCK_NB)
        break
    except BlockingIOError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.1)
""",
    ),
    "collective-mismatch": of(
        """
loss = step(batch)
if loss > limit:  # not on every rank
    dist.all_reduce(loss)
""",
        """
loss = step(batch)
dist.all_reduce(loss)  # on every rank, before anybody decides
if loss > limit:
    log(loss)
""",
    ),
}
