"""Two processes draw numbers from one file, under its lock."""
import fcntl
import os
import subprocess
import sys
import tempfile
import time


class NumberRange:
    def __init__(self, path):
        self.file = open(path, "r+")

    def draw(self):
        fcntl.flock(self.file, fcntl.LOCK_EX)
        try:
            self.file.seek(0)
            number = int(self.file.read() or 0) + 1
            self.file.seek(0)
            self.file.write(str(number))
            self.file.flush()
            time.sleep(0.05)  # a slow disk
            return number
        finally:
            fcntl.flock(self.file, fcntl.LOCK_UN)


def draw_all(path):
    numbers = NumberRange(path)
    while True:
        number = numbers.draw()
        if number % 20 == 0:
            print("drawn", number, flush=True)


def main():
    with tempfile.NamedTemporaryFile("w", suffix=".number") as file:
        with subprocess.Popen([sys.executable, __file__, file.name]):
            print("ready", flush=True)
            draw_all(file.name)


if __name__ == "__main__":
    draw_all(sys.argv[1]) if len(sys.argv) > 1 else main()
