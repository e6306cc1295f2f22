"""Workers share two licences; each has to take one before it computes."""
import multiprocessing
import os
import signal
import sys


class Licences:
    def __init__(self, context, count):
        self.permits = context.Semaphore(count)

    def take(self):
        self.permits.acquire()

    def give(self):
        self.permits.release()


def compute(licences, number):
    licences.take()
    if number < 2:
        os._exit(3)  # the solver gave up on this input
    licences.give()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    context = multiprocessing.get_context("fork")
    licences = Licences(context, 2)
    for number in range(2):
        worker = context.Process(target=compute, args=(licences, number), daemon=True)
        worker.start()
        worker.join()
    print("ready", flush=True)
    licences.take()
    print("computing here")


if __name__ == "__main__":
    main()
