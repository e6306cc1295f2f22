"""Governs the CPU use of report generators, with one greenlet for each."""
import os
import signal
import sys

import gevent
import gevent.event
from gevent import subprocess

GENERATOR = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
print("up", flush=True)
rows = 0
while True:
    rows += len("%d;%d" % (rows, rows % 97))
"""


class Governor:
    def __init__(self, limit):
        self.limit = limit
        self.closing = gevent.event.Event()
        self.children = []

    def launch(self):
        child = subprocess.Popen([sys.executable, "-c", GENERATOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdout.readline()
        self.children.append(child)
        return child

    def govern(self, child):
        while not self.closing.is_set():
            os.kill(child.pid, signal.SIGSTOP)  # CULPRIT
            self.closing.wait(2.0 * (1.0 - self.limit))
            os.kill(child.pid, signal.SIGCONT)
            self.closing.wait(2.0 * self.limit)


def main():
    governor = Governor(limit=0.05)
    greenlets = [gevent.spawn(governor.govern, governor.launch()) for _ in range(3)]
    gevent.sleep(0)
    print("ready", flush=True)
    gevent.joinall(greenlets)


if __name__ == "__main__":
    main()
