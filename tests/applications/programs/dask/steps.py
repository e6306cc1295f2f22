import os
import threading
import time
from pathlib import Path

from distributed import get_client

counting = threading.Lock()
count = 0


def add(number):
    return number + 1


def add_twice(number):
    client = get_client()
    time.sleep(1)
    Path(os.environ["READY"]).touch()
    once = client.submit(add, number, pure=False).result()  # HANG nested
    return client.submit(add, once, pure=False).result()


def current():
    with counting:  # HANG lock
        return count


def count_up():
    global count
    with counting:
        Path(os.environ["READY"]).touch()
        count = current() + 1
    return count
