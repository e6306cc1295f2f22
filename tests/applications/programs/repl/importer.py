import os
import queue
import threading
from pathlib import Path

jobs = queue.Queue()


def work():
    while True:
        name, size = jobs.get()
        print(name, size)
        jobs.task_done()


def run():
    threading.Thread(target=work, daemon=True).start()
    for job in (("a", 1), ("b",), ("c", 3)):
        jobs.put(job)
    Path(os.environ["READY"]).touch()
    jobs.join()  # HANG imported
