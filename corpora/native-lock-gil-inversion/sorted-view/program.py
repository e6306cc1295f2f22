"""A table in native memory, sorted by the C library with an order that is written in Python."""
import ctypes
import threading

LIBC = ctypes.CDLL(None)
QUICK = ctypes.PyDLL(None)
ORDER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


class Table:
    def __init__(self, numbers):
        self.mutex = ctypes.create_string_buffer(64)
        self.cells = (ctypes.c_int * len(numbers))(*numbers)
        self.compared = threading.Event()

    def order(self, left, right):
        self.compared.set()
        return left[0] - right[0]

    def sort(self):
        LIBC.pthread_mutex_lock(self.mutex)
        LIBC.qsort(self.cells, len(self.cells), 4, ORDER(self.order))  # CULPRIT
        LIBC.pthread_mutex_unlock(self.mutex)

    def top(self):
        QUICK.pthread_mutex_lock(self.mutex)  # CULPRIT
        first = self.cells[0]
        QUICK.pthread_mutex_unlock(self.mutex)
        return first


class View:
    def __init__(self, table):
        self.table = table

    def refresh(self):
        sorter = threading.Thread(target=self.table.sort, name="sorter")
        sorter.start()
        self.table.compared.wait()
        print("top", self.table.top())  # CULPRIT
        sorter.join()


def main():
    view = View(Table([n * 7919 % 100003 for n in range(300_000)]))
    print("ready", flush=True)
    view.refresh()


if __name__ == "__main__":
    main()
