"""Runs heavy nightly jobs in the daytime at a twentieth of a processor each, by letting them run in short slices."""
import ctypes
import os
import signal
import subprocess
import sys
import threading

JOB = """
import sys, zlib
total = 0
print("started", flush=True)
for n in range(10 ** 9):
    total = zlib.crc32(b"%d" % n, total)
print(total)
"""


def end_with_parent(number=1):
    ctypes.CDLL(None).prctl(number, signal.SIGKILL)


class Limiter(threading.Thread):
    """Lets one process run for `share` of the time."""

    def __init__(self, process, share, period=0.5):
        super().__init__(name="limiter-%d" % process.pid, daemon=True)
        self.process = process
        self.on = period * share
        self.off = period - self.on
        self.over = threading.Event()

    def slices(self):
        while self.process.poll() is None:
            yield signal.SIGSTOP, self.off  # CULPRIT
            yield signal.SIGCONT, self.on

    def run(self):
        for number, seconds in self.slices():
            os.kill(self.process.pid, number)  # CULPRIT
            if self.over.wait(seconds):
                break


class Night:
    def __init__(self, share):
        self.share = share
        self.jobs = []

    def start(self, text):
        job = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, preexec_fn=end_with_parent)
        job.stdout.readline()
        limiter = Limiter(job, self.share)
        self.jobs.append((job, limiter))
        limiter.start()

    def results(self):
        for job, _ in self.jobs:
            yield job.communicate()[0]


def main():
    night = Night(share=0.05)
    for _ in range(3):
        night.start(JOB)
    print("ready", flush=True)
    for result in night.results():
        print(result)


if __name__ == "__main__":
    main()
