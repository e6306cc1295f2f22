"""A service that converts files when it is told to; at the moment nobody tells."""
import concurrent.futures
import signal
import threading


class Converter:
    def __init__(self, workers):
        self.pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="convert")
        self.stop = threading.Event()

    def convert(self, number):
        return "%06d" % number

    def warm_up(self, workers):
        gate = threading.Barrier(workers)
        for job in [self.pool.submit(gate.wait) for _ in range(workers)]:
            job.result()

    def run(self):
        self.stop.wait()
        self.pool.shutdown()


def main():
    converter = Converter(workers=6)
    converter.warm_up(6)
    signal.signal(signal.SIGTERM, lambda *_: converter.stop.set())
    print("ready", flush=True)
    converter.run()


if __name__ == "__main__":
    main()
