"""Copies parish records, one process for each parish; a thread writes down what was copied."""
import multiprocessing
import queue
import threading

copied = queue.Queue()
written = []


def write_down():
    while True:
        written.append(copied.get())
        copied.task_done()


def copy(parish, pages):
    for page in range(pages):
        copied.put((parish, page))
    copied.join()  # CULPRIT


def main():
    threading.Thread(target=write_down, name="clerk", daemon=True).start()
    copied.put(("index", 0))
    copied.join()
    start = multiprocessing.get_context("fork")
    process = start.Process(target=copy, args=("Aldham", 3))
    process.start()  # CULPRIT
    print("ready", flush=True)
    process.join()


if __name__ == "__main__":
    main()
