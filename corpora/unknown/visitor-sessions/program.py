"""Keeps what visitors have in their baskets, by session; sessions come in all the time."""
import threading
import uuid


class Sessions:
    def __init__(self):
        self.baskets = {}

    def open(self):
        key = uuid.uuid4().hex
        self.baskets[key] = {"pages": bytearray(48 * 1024), "items": []}
        return key

    def visit(self, key, item):
        try:
            self.baskets[key]["items"].append(int(item))
        except ValueError:
            self.baskets[key]["items"].append(0)


def main():
    sessions = Sessions()

    def visitors(count):
        for number in range(count):
            sessions.visit(sessions.open(), "7" if number % 2 else "seven")

    visitors(600)
    print("ready", flush=True)
    closing = threading.Event()
    while not closing.wait(0.1):
        visitors(4)


if __name__ == "__main__":
    main()
