"""Actors with mailboxes, built on conditions."""
import collections
import threading
import time


class Mailbox:
    def __init__(self):
        self.changed = threading.Condition(threading.Lock())
        self.letters = collections.deque()

    def post(self, letter):
        with self.changed:
            self.letters.append(letter)
            self.changed.notify()

    def take(self):
        with self.changed:
            while not self.letters:
                self.changed.wait()
            return self.letters.popleft()


class Actor(threading.Thread):
    def __init__(self, name, following=None):
        super().__init__(name=name, daemon=True)
        self.mailbox = Mailbox()
        self.following = following
        self.handled = 0

    def run(self):
        while True:
            letter = self.mailbox.take()
            self.handled += 1
            if self.following is not None:
                self.following.mailbox.post(letter)


def main():
    last = Actor("archive")
    middle = Actor("sorting", last)
    first = Actor("intake", middle)
    for actor in (first, middle, last):
        actor.start()
    print("ready", flush=True)
    while True:
        first.mailbox.post("letter")
        time.sleep(0.7)


if __name__ == "__main__":
    main()
