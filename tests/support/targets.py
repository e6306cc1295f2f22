"""Programs that tests of several modules capture."""

from __future__ import annotations

#: Sleeps.
SLEEPER = "import time; time.sleep(600)"
#: Prints the signals it has received so far, one line a signal; ends with status 7 when told to.
COUNTS_SIGNALS = """
import os, signal, sys, time
got = []
def note(number, frame):
    got.append(signal.Signals(number).name)
    os.write(1, (" ".join(got) + "\\n").encode())  # print may be under way, and enters nobody twice
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
    signal.signal(number, note)
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "end":
        break
print("all:", *got, flush=True)
sys.exit(7)
"""
#: Four threads that want the GIL, and one that waits for something else; what comes then is to hold it.
WAITERS = """
import threading, time
def wanting():
    while True:
        time.sleep(0.01)
def resting():
    lock.acquire()
lock = threading.Lock()
lock.acquire()
threads = [threading.Thread(target=wanting, daemon=True) for _ in range(4)]
threads.append(threading.Thread(target=resting, daemon=True))
for thread in threads:
    thread.start()
time.sleep(0.2)
print("ready", flush=True)
"""
