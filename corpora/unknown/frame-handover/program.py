"""Two processes hand over camera frames in shared memory; a byte each tells the other side to go on."""
import multiprocessing
import sys
import time
from multiprocessing import shared_memory

WRITTEN, READ, FRAME = 0, 1, 2


def camera(name, frames):
    memory = shared_memory.SharedMemory(name=name)
    view = memory.buf
    for number in range(frames):
        view[FRAME + number % 64] = number % 251
        view[WRITTEN] = (number + 1) % 256
        while view[READ] != (number + 1) % 256:
            time.sleep(0.001)
    memory.close()


def display(view, frames):
    shown = 0
    for number in range(frames):
        while view[WRITTEN] != (number + 1) % 255:
            time.sleep(0.001)
        shown += view[FRAME + number % 64]
        view[READ] = (number + 1) % 256
        if number == 250:
            print("ready", flush=True)
    return shown


def main():
    memory = shared_memory.SharedMemory(create=True, size=4096)
    try:
        process = multiprocessing.Process(target=camera, args=(memory.name, 100_000), daemon=True)
        process.start()
        print(display(memory.buf, 100_000))
    finally:
        memory.close()
        memory.unlink()


if __name__ == "__main__":
    sys.exit(main())
