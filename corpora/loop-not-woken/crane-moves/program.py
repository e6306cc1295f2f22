"""A harbour crane: its controller moves containers, its drive reports from a thread of its own."""
import asyncio
import threading
import time


class Drive:
    """Talks to the motor; calls back when a position is reached."""

    def __init__(self):
        self.reached = None
        self.orders = []
        self.changed = threading.Condition()

    def start(self):
        threading.Thread(target=self.run, name="drive", daemon=True).start()

    def move(self, position):
        with self.changed:
            self.orders.append(position)
            self.changed.notify()

    def run(self):
        while True:
            with self.changed:
                while not self.orders:
                    self.changed.wait()
                position = self.orders.pop()
            time.sleep(0.2)
            self.reached(position)


class Axis:
    def __init__(self, drive):
        self.drive = drive
        self.drive.reached = self.on_reached
        self.arrival = None
        self.position = 0

    def on_reached(self, position):
        self.position = position
        if self.arrival is not None and not self.arrival.done():
            self.arrival.set_result(position)  # CULPRIT

    async def go(self, position):
        self.arrival = asyncio.get_running_loop().create_future()
        self.drive.move(position)
        return await self.arrival  # CULPRIT


class Crane:
    def __init__(self, axis):
        self.axis = axis

    async def unload(self, places):
        for place in places:
            await self.axis.go(place)
        return self.axis.position


async def main():
    drive = Drive()
    drive.start()
    print("ready", flush=True)
    print(await asyncio.gather(Crane(Axis(drive)).unload([3, 8, 2])))


if __name__ == "__main__":
    asyncio.run(main())
