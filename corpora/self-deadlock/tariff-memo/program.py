"""Tariffs by customs code, remembered by a small cache with a lock for each key."""

import threading
import time


class Guard:
    __slots__ = ("lock", "users")

    def __init__(self):
        self.lock = threading.Lock()
        self.users = 0

    def __enter__(self):
        self.users += 1
        self.lock.acquire()

    def __exit__(self, *_):
        self.users -= 1
        self.lock.release()


class Memo:
    def __init__(self, compute):
        self.compute = compute
        self.known = {}
        self.guards = {}

    def get(self, code):
        if code in self.known:
            return self.known[code]
        guard = self.guards.setdefault(code, Guard())
        with guard:  # CULPRIT
            if code not in self.known:
                self.known[code] = self.compute(code)
            return self.known[code]


class Tariffs:
    def __init__(self):
        self.memo = Memo(self.rate)

    def rate(self, code):
        parent = code[:-2] or "85"
        return self.memo.get(parent) + len(code) * 0.1  # CULPRIT


def beat():
    while True:
        time.sleep(0.5)


def main():
    threading.Thread(target=beat, name="beat", daemon=True).start()
    print("ready", flush=True)
    print(Tariffs().memo.get("854231"))


if __name__ == "__main__":
    main()
