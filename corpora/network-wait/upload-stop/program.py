"""Uploads pictures of a trail camera, and tells how far it is on SIGUSR1."""
import os
import signal
import socket
import sys
import threading
import time


class Uploader(threading.Thread):
    def __init__(self, address, pictures):
        super().__init__(name="upload", daemon=True)
        self.sock = socket.create_connection(address)
        self.sock.settimeout(None)  # CULPRIT
        self.pictures = pictures
        self.progress = threading.Lock()
        self.sending = threading.Event()
        self.done = 0

    def send(self, picture):
        self.sock.sendall(picture)
        self.sending.set()
        return self.sock.recv(2)  # CULPRIT

    def run(self):
        for picture in self.pictures:
            with self.progress:
                self.send(picture)  # CULPRIT
                self.done += 1

    def tell(self, signum, frame):
        with self.progress:
            print("%d of %d" % (self.done, len(self.pictures)), flush=True)


def main():
    if len(sys.argv) > 1:
        host, _, port = sys.argv[1].rpartition(":")
        address = host, int(port)
    else:
        stand_in = socket.create_server(("127.0.0.1", 0))
        address = stand_in.getsockname()
    uploader = Uploader(address, [b"\0" * 900 for _ in range(20)])
    signal.signal(signal.SIGUSR1, uploader.tell)
    uploader.start()
    uploader.sending.wait()
    print("ready", flush=True)
    os.kill(os.getpid(), signal.SIGUSR1)
    while uploader.is_alive():
        time.sleep(0.5)


if __name__ == "__main__":
    main()
