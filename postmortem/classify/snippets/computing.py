"""Snippets of computation, memory and crashes."""

from __future__ import annotations

from typing import Dict

from .snippet import Snippet, of

SNIPPETS: Dict[str, Snippet] = {
    "gil-contention": of(
        """
with concurrent.futures.ThreadPoolExecutor() as pool:
    prices = list(pool.map(price, routes))  # Python code: one thread runs at a time
""",
        """
with concurrent.futures.ProcessPoolExecutor() as pool:
    prices = list(pool.map(price, routes, chunksize=100))
""",
    ),
    "python-busy-loop": of(
        """
while position < len(text):
    match = token.match(text, position)
    if match:  # without one the position stays, for ever
        position = match.end()
""",
        """
while position < len(text):
    match = token.match(text, position)
    if match is None:
        raise ValueError(f"cannot read {text[position : position + 20]!r}")
    position = match.end()
""",
    ),
    "regex-backtracking": of(
        """
NAME = re.compile(r"^(\\w+\\s?)*$")  # every text can be cut up in 2**n ways, and all are tried
""",
        """
NAME = re.compile(r"^\\w+(?:\\s\\w+)*\\s?$")  # one way; and a limit for the text's length
""",
    ),
    "runaway-recursion": of(
        """
def members(group):
    for member in group.members:
        yield member
        yield from members(member)  # a group that contains itself
""",
        """
def members(group, seen=None):
    seen = set() if seen is None else seen
    for member in group.members:
        if member.name not in seen:
            seen.add(member.name)
            yield member
            yield from members(member, seen)
""",
    ),
    "gc-storm": of(
        """
for row in rows:
    store(row)
    gc.collect()  # walks all objects that there are, for every row
""",
        """
gc.freeze()  # what is loaded now is not walked again
for row in rows:
    store(row)
""",
    ),
    "traceback-cycle-leak": of(
        """
try:
    upload(table)
except OSError as exc:
    failures.append(exc)  # with its traceback, whose frames hold the table
""",
        """
try:
    upload(table)
except OSError as exc:
    failures.append(f"{type(exc).__name__}: {exc}")  # or exc.with_traceback(None), and its causes likewise
""",
    ),
    "slow-import": of(
        """
import pandas  # at the top of a module of which most runs need nothing


def report(rows):
    return pandas.DataFrame(rows).describe()
""",
        """
def report(rows):
    import pandas  # when it is needed

    return pandas.DataFrame(rows).describe()
""",
    ),
    "sleeping": of(
        """
while not os.path.exists(path):
    time.sleep(60)
""",
        """
for _ in range(30):
    if os.path.exists(path):
        break
    time.sleep(2)
else:
    raise TimeoutError(f"no {path} after a minute")
""",
    ),
    "gil-held-by-native": of(
        """
async def check(password, hashed):
    return slow_hash(password) == hashed  # C code that keeps the interpreter lock: no thread runs
""",
        """
async def check(password, hashed):
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(process_pool, matches, password, hashed)  # another process, another lock
""",
    ),
    "stack-overflow": of(
        """
sys.setrecursionlimit(1000000)  # the interpreter no longer stops a recursion before the stack ends
threading.Thread(target=parse).start()
""",
        """
threading.stack_size(256 * 1024 * 1024)  # a stack for as deep a recursion as is needed
sys.setrecursionlimit(100000)
threading.Thread(target=parse).start()
""",
    ),
}
