"""Workers that look for a job once a second, so that they notice when they should stop."""
import queue
import signal
import threading


class Worker(threading.Thread):
    def __init__(self, number, jobs, stop):
        super().__init__(name="worker-%d" % number)
        self.jobs = jobs
        self.stop = stop
        self.done = 0

    def run(self):
        while not self.stop.is_set():
            try:
                job = self.jobs.get(timeout=1.0)
            except queue.Empty:
                continue
            job()
            self.done += 1


class Service:
    def __init__(self, workers):
        self.jobs = queue.Queue(maxsize=100)
        self.stop = threading.Event()
        self.workers = [Worker(n, self.jobs, self.stop) for n in range(workers)]

    def run(self):
        for worker in self.workers:
            worker.start()
        for worker in self.workers:
            worker.join()


def main():
    service = Service(5)
    signal.signal(signal.SIGTERM, lambda *_: service.stop.set())
    print("ready", flush=True)
    service.run()


if __name__ == "__main__":
    main()
