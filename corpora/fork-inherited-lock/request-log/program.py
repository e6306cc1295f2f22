"""Handles requests in forked processes; an access log is written by all of them and by a rotation thread."""
import multiprocessing
import threading
import time


class AccessLog:
    def __init__(self):
        self.lock = threading.Lock()
        self.lines = []

    def write(self, line):
        with self.lock:  # CULPRIT
            self.lines.append(line)

    def rotate(self, started):
        with self.lock:  # CULPRIT
            started.set()
            old, self.lines = self.lines, []
            time.sleep(0.2)  # compresses the old lines
        return len(old)


class Server:
    def __init__(self, log):
        self.log = log
        self.context = multiprocessing.get_context("fork")

    def handle(self, number):
        self.log.write("request %d" % number)  # CULPRIT

    def serve(self, number):
        worker = self.context.Process(target=self.handle, args=(number,), name="request-%d" % number)  # CULPRIT
        worker.start()  # CULPRIT
        worker.join()


def main():
    log = AccessLog()
    server = Server(log)
    server.serve(1)
    rotating = threading.Event()
    threading.Thread(target=log.rotate, args=(rotating,), name="rotation").start()
    rotating.wait()
    print("ready", flush=True)
    server.serve(2)


if __name__ == "__main__":
    main()
