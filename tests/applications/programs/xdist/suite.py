import os
import queue
import threading
import time
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range(2000))
def test_idle(number):
    time.sleep(0.05)
    if number > 40:
        Path(os.environ["READY"]).touch()
    assert sum(range(number)) >= 0


def move(mine, theirs):
    with mine:
        time.sleep(0.5)
        Path(os.environ["READY"]).touch()
        with theirs:  # HANG transfer
            pass


def test_transfer():
    one, two = threading.Lock(), threading.Lock()
    threads = [threading.Thread(target=move, args=pair) for pair in ((one, two), (two, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def consume(jobs):
    while True:
        job = jobs.get()
        print(10 / job)
        jobs.task_done()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_drain():
    jobs = queue.Queue()
    threading.Thread(target=consume, args=(jobs,), daemon=True).start()
    for job in (2, 1, 0, 3):
        jobs.put(job)
    Path(os.environ["READY"]).touch()
    jobs.join()  # HANG drain
