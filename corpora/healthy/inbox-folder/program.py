"""Watches an inbox folder and files what is put there; a scanner puts something there now and then."""
import os
import queue
import tempfile
import threading
import time

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer


class Inbox(FileSystemEventHandler):
    def __init__(self):
        self.arrived = queue.Queue()

    def on_closed(self, event):
        self.arrived.put(event.src_path)


def scanner(folder):
    number = 0
    while True:
        number += 1
        with open(os.path.join(folder, "scan-%d" % (number % 10)), "w") as file:
            file.write("page " * 100)
        time.sleep(0.7)


def main():
    with tempfile.TemporaryDirectory() as folder:
        inbox = Inbox()
        observer = Observer()
        observer.schedule(inbox, folder)
        observer.start()
        threading.Thread(target=scanner, args=(folder,), name="scanner", daemon=True).start()
        filed = {}
        filed[inbox.arrived.get()] = 1
        print("ready", flush=True)
        while True:
            path = inbox.arrived.get()
            filed[path] = filed.get(path, 0) + 1


if __name__ == "__main__":
    main()
