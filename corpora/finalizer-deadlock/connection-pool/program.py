"""A pool of connections that takes back those whose users forgot to."""
import collections
import functools
import gc
import threading
import weakref


class Connection:
    def __init__(self, number):
        self.number = number
        self.notes = {}


class Lease:
    """What a user holds; when it goes away, the connection returns to its pool."""

    def __init__(self, pool, connection):
        self.connection = connection
        self.returned = weakref.finalize(self, pool.give_back, connection)


class Pool:
    def __init__(self, size):
        self._guard = threading.Lock()
        self._free = collections.deque(Connection(n) for n in range(size))

    def lease(self):
        with self._guard:
            if len(self._free) < 2:
                self._reclaim()  # CULPRIT
            return Lease(self, self._free.popleft())

    def _reclaim(self):
        gc.collect()  # CULPRIT

    def give_back(self, connection):
        with self._guard:  # CULPRIT
            self._free.append(connection)


class Request:
    def __init__(self, pool):
        self.lease = pool.lease()
        self.finish = functools.partial(self.close)  # refers back to this request

    def close(self):
        self.lease.returned()


class Handler(threading.Thread):
    def __init__(self, number, pool):
        super().__init__(name="handler-%d" % number, daemon=True)
        self.pool = pool
        self.served = 0

    def run(self):
        while self.served < 50:
            Request(self.pool)
            self.served += 1


def main():
    gc.disable()  # collected when the pool runs low, not in the middle of a request
    pool = Pool(12)
    handlers = [Handler(n, pool) for n in range(2)]
    print("ready", flush=True)
    for handler in handlers:
        handler.start()
    for handler in handlers:
        handler.join()


if __name__ == "__main__":
    main()
