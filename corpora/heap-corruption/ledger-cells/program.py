"""Formats the cells of a ledger by the C library's strfmon; tested with Python's checked allocators."""
import ctypes
import os
import sys

libc = ctypes.CDLL(None)
libc.snprintf.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]

CELL = 40
LINE = 200


class Cell:
    def __init__(self, width):
        self.text = ctypes.create_string_buffer(width)

    def write(self, name, cents):
        libc.snprintf(self.text, LINE, b"%-20s%12ld.%02ld EUR %s", ctypes.c_char_p(name.encode()),
                      ctypes.c_long(cents // 100), ctypes.c_long(cents % 100), ctypes.c_char_p(b"booked"))  # CULPRIT
        return self.text.value.decode()


class Ledger:
    def __init__(self, rows):
        self.rows = rows

    def lines(self):
        for name, cents in self.rows:
            yield self.line(name, cents)

    def line(self, name, cents):
        cell = Cell(CELL)  # CULPRIT
        return cell.write(name, cents)


def checked():
    """Starts the program again with the checked allocators, unless it runs with them."""
    if os.environ.get("PYTHONMALLOC") != "debug":
        os.execve(sys.executable, [sys.executable] + sys.argv, dict(os.environ, PYTHONMALLOC="debug"))


def main():
    checked()
    ledger = Ledger([("rent", 85000), ("heating", 12050), ("cleaning of the stairs", 4990)])
    print("ready", flush=True)
    for line in ledger.lines():
        print(line)


if __name__ == "__main__":
    main()
