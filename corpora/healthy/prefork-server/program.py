"""A prefork server: the master watches over its workers, who wait for connections."""
import os
import signal
import socket
import sys


class Worker:
    def __init__(self, listener):
        self.listener = listener

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            with connection:
                connection.sendall(connection.recv(1024))


class Master:
    def __init__(self, count):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.count = count
        self.workers = set()

    def spawn(self):
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                Worker(self.listener).run()
            finally:
                os._exit(1)
        self.workers.add(pid)

    def stop(self, *_):
        for pid in self.workers:
            os.kill(pid, signal.SIGTERM)
        sys.exit(0)

    def run(self):
        signal.signal(signal.SIGTERM, self.stop)
        for _ in range(self.count):
            self.spawn()
        print("ready", flush=True)
        while True:
            pid, _ = os.wait()
            self.workers.discard(pid)
            self.spawn()


if __name__ == "__main__":
    Master(2).run()
