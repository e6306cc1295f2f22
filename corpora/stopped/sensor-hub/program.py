"""A hub that gives each sensor decoder a slice of the processor in turn, the others rest meanwhile."""
from gevent import monkey

monkey.patch_all()

import ctypes  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402

import gevent  # noqa: E402
from gevent import subprocess  # noqa: E402

DECODER = """
import sys
print("up", flush=True)
sequence = 0
for line in iter(sys.stdin.readline, ""):
    sequence += 1
    print(sequence, line.strip()[::-1], flush=True)
"""


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Decoder:
    def __init__(self, name):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-c", DECODER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=end_with_parent
        )
        self.process.stdout.readline()

    def signal(self, number):
        os.kill(self.process.pid, number)

    def decode(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


class Hub:
    def __init__(self, names):
        self.decoders = [Decoder(name) for name in names]

    def rest_all(self):
        for decoder in self.decoders:
            decoder.signal(signal.SIGSTOP)  # CULPRIT

    def take_turns(self, slice_s):
        while True:
            for decoder in self.decoders[:-1]:  # CULPRIT
                decoder.signal(signal.SIGCONT)
                gevent.sleep(slice_s)
                decoder.signal(signal.SIGSTOP)  # CULPRIT
                gevent.sleep(slice_s * 19)


def main():
    hub = Hub(["wind", "rain", "light"])
    hub.rest_all()
    turns = gevent.spawn(hub.take_turns, 0.02)
    last = gevent.spawn(hub.decoders[-1].decode, "0417 lux")
    gevent.sleep(0)
    print("ready", flush=True)
    print(last.get())
    turns.kill()


if __name__ == "__main__":
    main()
