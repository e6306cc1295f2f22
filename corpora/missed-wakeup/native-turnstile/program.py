"""Lets visitors through a turnstile that a driver library counts on a semaphore of its own."""
import ctypes
import threading

libc = ctypes.CDLL(None, use_errno=True)


class Turnstile:
    def __init__(self, places):
        self.semaphore = ctypes.create_string_buffer(64)
        if libc.sem_init(self.semaphore, 0, places):
            raise OSError(ctypes.get_errno(), "sem_init")

    def enter(self):
        libc.sem_wait(self.semaphore)

    def leave(self):
        libc.sem_post(self.semaphore)


class Hall:
    def __init__(self, places):
        self.turnstile = Turnstile(places)
        self.inside = []
        self.full = threading.Event()

    def visit(self, visitor):
        self.turnstile.enter()  # CULPRIT
        self.inside.append(visitor)
        if len(self.inside) == 3:
            self.full.set()


def main():
    hall = Hall(places=3)
    visitors = [threading.Thread(target=hall.visit, args=(n,), name="visitor-%d" % n, daemon=True) for n in range(5)]
    for visitor in visitors:
        visitor.start()
    hall.full.wait()
    print("ready", flush=True)
    for visitor in visitors:
        visitor.join()


if __name__ == "__main__":
    main()
