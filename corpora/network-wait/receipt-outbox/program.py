"""Sends the receipts of the day to the archive: they are queued at closing time and go out one by one."""
import queue
import socket
import sys
import threading


class Outbox(threading.Thread):
    def __init__(self, address):
        super().__init__(name="outbox")
        host, _, port = address.rpartition(":")
        self.line = socket.create_connection((host, int(port)))
        self.receipts = queue.Queue()
        self.first = threading.Event()

    def send(self, receipt):
        self.line.sendall(receipt + b"\n")
        if self.line.recv(64) != b"ok\n":  # CULPRIT
            raise OSError("receipt refused: %r" % receipt)

    def run(self):
        while True:
            receipt = self.receipts.get()
            if receipt is None:
                return
            self.send(receipt)
            self.first.set()


def main():
    outbox = Outbox(sys.argv[1])
    for number in range(80000):
        outbox.receipts.put(b"receipt %d" % number)
    outbox.receipts.put(None)
    outbox.start()
    outbox.first.wait()
    print("ready", flush=True)
    outbox.join()


if __name__ == "__main__":
    main()
