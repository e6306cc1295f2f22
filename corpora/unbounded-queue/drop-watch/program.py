"""Watches a folder into which cameras drop their pictures, and takes a digest of each picture that changes."""
import hashlib
import os
import tempfile
import threading
import time

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer


class Digests(FileSystemEventHandler):
    def __init__(self):
        self.known = {}
        self.first = threading.Event()

    def on_any_event(self, event):
        if event.is_directory:
            return
        self.first.set()
        self.known[event.src_path] = self.digest(event.src_path)  # CULPRIT

    def digest(self, path):
        """In parts, with pauses, so that the disk stays free for the cameras."""
        whole = hashlib.sha256()
        with open(path, "rb") as picture:
            while True:
                part = picture.read(256)
                if not part:
                    return whole.hexdigest()
                whole.update(part)
                time.sleep(0.05)  # CULPRIT


class Camera(threading.Thread):
    def __init__(self, folder, number):
        super().__init__(name="camera-%d" % number, daemon=True)
        self.folder = folder
        self.number = number

    def run(self):
        shot = 0
        while True:
            shot += 1
            path = os.path.join(self.folder, "%d-%d.raw" % (self.number, shot % 20))
            with open(path, "wb") as picture:
                picture.write(os.urandom(1024))
            time.sleep(0.01)


def main():
    folder = tempfile.mkdtemp()
    digests = Digests()
    observer = Observer()
    observer.daemon = True
    observer.schedule(digests, folder)
    observer.start()
    cameras = [Camera(folder, number) for number in range(3)]
    for camera in cameras:
        camera.start()
    digests.first.wait()
    print("ready", flush=True)
    for camera in cameras:
        camera.join()


if __name__ == "__main__":
    main()
