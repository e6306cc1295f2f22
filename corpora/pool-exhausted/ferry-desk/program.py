"""The desk of a ferry line: clerks book over a few shared lines to the mainland; announcements come from a feed."""
import contextlib
import queue
import sys
import threading


class Lines:
    """The telephone lines; there are two."""

    def __init__(self, count):
        self.free = queue.LifoQueue()
        for number in range(count):
            self.free.put("line-%d" % number)

    @contextlib.contextmanager
    def line(self):
        line = self.free.get()  # CULPRIT
        try:
            yield line
        finally:
            self.free.put(line)


class Clerk(threading.Thread):
    def __init__(self, name, lines, all_here):
        super().__init__(name=name, daemon=True)
        self.lines = lines
        self.all_here = all_here
        self.booked = []

    def confirm(self, booking):
        with self.lines.line() as line:  # CULPRIT
            self.booked.append((booking, line))

    def run(self):
        with self.lines.line():
            self.all_here.wait()
            self.confirm("car deck, %s" % self.name)  # CULPRIT


class Feed(threading.Thread):
    def __init__(self, texts):
        super().__init__(name="feed", daemon=True)
        self.texts = texts
        self.spoken = queue.Queue()

    def run(self):
        for text in self.texts:
            self.spoken.put(text.encode("ascii"))  # CULPRIT
        self.spoken.put(None)


class Speaker(threading.Thread):
    def __init__(self, feed):
        super().__init__(name="speaker", daemon=True)
        self.feed = feed
        self.said = 0

    def run(self):
        while self.feed.spoken.get() is not None:  # CULPRIT
            self.said += 1


def main():
    threading.excepthook = lambda details: print("feed:", details.exc_value, file=sys.stderr)
    lines, all_here = Lines(2), threading.Barrier(2)
    clerks = [Clerk(name, lines, all_here) for name in ("olsen", "berg")]
    feed = Feed(["Boarding begins", "Sailing to Tromsø at nine"])
    speaker = Speaker(feed)
    for thread in [*clerks, feed, speaker]:
        thread.start()
    feed.join()
    print("ready", flush=True)
    for thread in [*clerks, speaker]:
        thread.join()


if __name__ == "__main__":
    main()
