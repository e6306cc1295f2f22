"""Applies settings to many zones; SIGHUP reloads them."""
import os
import signal
import threading


class Settings:
    def __init__(self):
        self._lock = threading.Lock()
        self._values = {"zone-%d" % n: n for n in range(50)}

    def apply(self, zones):
        with self._lock:
            for zone in zones:
                if zone == 200:
                    os.kill(os.getpid(), signal.SIGHUP)  # stands for the operator's `kill -HUP`
                sum(value * zone for value in self._values.values())

    def reload(self):
        with self._lock:  # CULPRIT
            self._values = {name: value + 1 for name, value in self._values.items()}


class Service:
    def __init__(self):
        self.settings = Settings()
        signal.signal(signal.SIGHUP, self.on_hangup)

    def on_hangup(self, number, frame):  # CULPRIT
        self.settings.reload()  # CULPRIT

    def run(self):
        print("ready", flush=True)
        while True:
            self.settings.apply(range(1000))


if __name__ == "__main__":
    Service().run()
