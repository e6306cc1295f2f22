"""A table of sessions with a limit."""
import threading


class Sessions:
    def __init__(self, limit):
        self.limit = limit
        self.lock = threading.Lock()
        self.names = []

    def add(self, name):
        with self.lock:
            if len(self.names) >= self.limit:
                self.drop_oldest()  # CULPRIT
            self.names.append(name)

    def drop_oldest(self):
        with self.lock:  # CULPRIT
            del self.names[0]


sessions = Sessions(limit=3)
print("ready", flush=True)
for number in range(5):
    sessions.add("user-%d" % number)
