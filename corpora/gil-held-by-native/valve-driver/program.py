"""Controls a valve through its C library and publishes its state every half second."""
import ctypes
import threading
import time


class Valve:
    """The driver's functions are short, so they are called without letting go of the interpreter."""

    def __init__(self):
        self.driver = ctypes.PyDLL(None)  # CULPRIT
        self.open = False

    def move(self, seconds):
        self.driver.sleep(seconds)  # CULPRIT
        self.open = not self.open


class Publisher(threading.Thread):
    def __init__(self, valve):
        super().__init__(name="publisher", daemon=True)
        self.valve = valve
        self.states = []

    def run(self):
        while True:
            self.states.append(self.valve.open)
            time.sleep(0.1)


def main():
    valve = Valve()
    Publisher(valve).start()
    time.sleep(0.3)
    print("ready", flush=True)
    valve.move(600)  # CULPRIT


if __name__ == "__main__":
    main()
