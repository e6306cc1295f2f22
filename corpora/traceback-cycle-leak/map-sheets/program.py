"""A service that draws map sheets. Latency matters, so the collector is off while it serves."""
import gc
import random
import struct
import time

TILE = 1024 * 1024


class SheetError(Exception):
    def __init__(self, sheet, reason):
        super().__init__("%s: %s" % (sheet, reason))
        self.sheet = sheet


class Canvas:
    def __init__(self, width):
        self.width = width
        self.rows = bytearray(TILE)

    def plot(self, point):
        x, y = struct.unpack("<HH", point)
        if x >= self.width:
            raise ValueError("x=%d outside of %d" % (x, self.width))
        self.rows[(y * self.width + x) % TILE] = 1


class Layer:
    def __init__(self, name, points):
        self.name = name
        self.points = points

    def draw(self, canvas):
        for point in self.points:
            canvas.plot(point)


class SheetJob:
    """One sheet; remembers what went wrong, for whoever asks for its state."""

    def __init__(self, name, layers):
        self.name = name
        self.layers = layers
        self.last_error = None

    def run(self):
        canvas = Canvas(width=1024)
        try:
            for layer in self.layers:
                layer.draw(canvas)
        except ValueError as exc:
            self.last_error = SheetError(self.name, exc)
            self.last_error.__cause__ = exc  # CULPRIT
            return None
        return bytes(canvas.rows)

    def state(self):
        return "failed: %s" % self.last_error if self.last_error else "drawn"


class SheetService:
    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.states = {}

    def order(self, number):
        points = [struct.pack("<HH", self.dice.randrange(1100), self.dice.randrange(900)) for _ in range(300)]
        job = SheetJob("sheet-%04d" % number, [Layer("roads", points), Layer("names", points[::3])])
        picture = job.run()
        self.states[number] = job.state()
        return picture

    def serve(self, first, count, pause):
        for number in range(first, first + count):
            self.order(number)
            time.sleep(pause)


def main():
    gc.disable()  # CULPRIT
    service = SheetService(seed=7)
    service.serve(0, 40, pause=0)
    print("ready", flush=True)
    service.serve(40, 1200, pause=1.0)


if __name__ == "__main__":
    main()
