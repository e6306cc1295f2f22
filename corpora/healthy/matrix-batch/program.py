"""Reduces survey matrices with numpy in two threads, and writes the norms."""
import os
import queue
import threading

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy  # noqa: E402


def reduce(jobs, norms):
    while True:
        number, size = jobs.get()
        matrix = numpy.random.RandomState(number).rand(size, size)
        product = matrix @ matrix.T
        norms.put((number, float(numpy.sort(product.ravel())[-1])))


def main():
    jobs, norms = queue.Queue(4), queue.Queue(4)
    for _ in range(2):
        threading.Thread(target=reduce, args=(jobs, norms), daemon=True).start()

    def survey():
        number = 0
        while True:
            jobs.put((number, 600))
            number += 1

    threading.Thread(target=survey, name="survey", daemon=True).start()
    largest = 0.0
    for done in range(1_000_000):
        number, norm = norms.get()
        largest = max(largest, norm)
        if done == 0:
            print("ready", flush=True)


if __name__ == "__main__":
    main()
