"""Processes orders in sixteen threads; the log goes to the operators' message board."""
import random
import threading
import time

from loguru import logger


class Board:
    """Stands in for the web hook of the message board."""

    def __init__(self, delay):
        self.delay = delay
        self.posted = 0

    def post(self, message):
        time.sleep(self.delay)  # CULPRIT
        self.posted += 1


class Desk(threading.Thread):
    def __init__(self, number):
        super().__init__(name="desk-%d" % number, daemon=True)
        self.number = number
        self.log = logger.bind(desk=number)

    def process(self, order):
        amount = random.randrange(5, 500)
        self.log.info("order {} over {} accepted", order, amount)
        if amount > 400:
            self.log.warning("order {} needs a second signature", order)

    def run(self):
        order = 0
        while True:
            order += 1
            self.process("%d/%d" % (self.number, order))


def main():
    board = Board(delay=0.05)
    logger.remove()
    logger.add(board.post, format="{time:HH:mm:ss} {extra[desk]} {message}")  # CULPRIT
    desks = [Desk(number) for number in range(16)]
    for desk in desks:
        desk.start()
    print("ready", flush=True)
    for desk in desks:
        desk.join()


if __name__ == "__main__":
    main()
