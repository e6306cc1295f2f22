"""Moves the stage of a microscope; every move holds the stage's lock."""
import threading
import time

from labthings.sync.lock import StrictLock


class LimitSwitch(Exception):
    pass


class Stage:
    RANGE = 5000

    def __init__(self):
        self.lock = StrictLock(name="stage")
        self.position = (0, 0)

    def step(self, x, y):
        if max(abs(x), abs(y)) > self.RANGE:
            raise LimitSwitch("%d, %d" % (x, y))
        time.sleep(0.001)
        self.position = x, y

    def move(self, x, y):
        with self.lock(timeout=None):  # CULPRIT
            for part in range(1, 5):
                self.step(x * part // 4, y * part // 4)


class Scan(threading.Thread):
    """A tiling scan around a centre."""

    def __init__(self, stage, centre, tiles, pitch):
        super().__init__(name="scan-%d" % centre, daemon=True)
        self.stage = stage
        self.places = [(centre + pitch * n, centre) for n in range(tiles)]

    def run(self):
        for x, y in self.places:
            self.stage.move(x, y)


class Monitor(threading.Thread):
    def __init__(self, stage):
        super().__init__(name="monitor", daemon=True)
        self.stage = stage
        self.seen = []

    def run(self):
        while True:
            self.seen.append(self.stage.position)
            time.sleep(0.2)


def main():
    threading.excepthook = lambda args: print("scan ended:", args.exc_value)
    stage = Stage()
    Monitor(stage).start()
    first = Scan(stage, centre=100, tiles=12, pitch=450)
    first.start()
    first.join()
    print("ready", flush=True)
    second = Scan(stage, centre=0, tiles=4, pitch=200)
    second.start()
    stage.move(0, 0)
    second.join()


if __name__ == "__main__":
    main()
