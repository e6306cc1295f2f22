"""Draws numbers for a citizens' office: the display must have shown a number before the next one is drawn."""
import fcntl
import os
import sys
import tempfile

import websocket


class Numbers:
    def __init__(self, path):
        self.file = open(path, "a+")

    def __enter__(self):
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self.file.seek(0)
        return len(self.file.readlines()) + 1

    def __exit__(self, *exception):
        fcntl.flock(self.file, fcntl.LOCK_UN)


class Display:
    def __init__(self, address):
        self.link = websocket.create_connection("ws://%s/display" % address)  # CULPRIT

    def show(self, number):
        self.link.send("show %d" % number)
        return self.link.recv()  # CULPRIT


class Office:
    def __init__(self, numbers, display):
        self.numbers = numbers
        self.display = display

    def draw(self):
        with self.numbers as number:
            shown = self.display.show(number)
            self.numbers.file.write("%d %s\n" % (number, shown))
            return number


def main():
    with tempfile.TemporaryDirectory() as folder:
        office = Office(Numbers(os.path.join(folder, "numbers")), Display(sys.argv[1]))
        print("ready", flush=True)
        print(office.draw())


if __name__ == "__main__":
    main()
