"""Packs orders as soon as the goods have come in."""
import threading
import time


class StockRoom:
    def __init__(self):
        self.arrived = threading.Condition()
        self.goods = {}

    def deliver(self, article, pieces):
        with self.arrived:
            self.goods[article] = self.goods.get(article, 0) + pieces
            self.arrived.notify()

    def take(self, article, pieces):
        with self.arrived:
            self.arrived.wait()  # CULPRIT
            self.goods[article] -= pieces


class Packer(threading.Thread):
    def __init__(self, room, orders):
        super().__init__(name="packer")
        self.room = room
        self.orders = orders
        self.packed = 0

    def run(self):
        time.sleep(0.2)  # fetches boxes
        for article, pieces in self.orders:
            self.room.take(article, pieces)
            self.packed += 1


def main():
    room = StockRoom()
    packer = Packer(room, [("lamp", 1), ("chair", 4)])
    packer.start()
    room.deliver("lamp", 10)
    room.deliver("chair", 10)
    time.sleep(0.4)
    print("ready", flush=True)
    packer.join()
    print("packed", packer.packed)


if __name__ == "__main__":
    main()
