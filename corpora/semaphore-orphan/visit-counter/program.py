"""Counts visits in several processes, in one shared value."""
import ctypes
import multiprocessing
import os
import signal


class Counter:
    def __init__(self, context):
        self.lock = context.Lock()
        self.value = context.Value(ctypes.c_long, 0, lock=False)

    def add(self, visits):
        with self.lock:  # CULPRIT
            if visits > 1000:
                self.archive()
            self.value.value += visits

    def archive(self):
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory runs out


def site(counter, visits):
    for number in visits:
        counter.add(number)


def main():
    context = multiprocessing.get_context("fork")
    counter = Counter(context)
    first = context.Process(target=site, args=(counter, [5, 90, 2000]), name="site-first")
    first.start()
    first.join()
    rest = [context.Process(target=site, args=(counter, [n, n]), name="site-%d" % n) for n in (1, 2)]
    for process in rest:
        process.start()
    print("ready", flush=True)
    for process in rest:
        process.join()
    print("visits", counter.value.value)


if __name__ == "__main__":
    main()
