"""Takes in claims with photographs, batch by batch, and lists those it had to refuse."""
import queue
import threading


class Refused(Exception):
    def __init__(self, claim, reason):
        super().__init__("%s: %s" % (claim, reason))
        self.claim = claim


class Intake:
    def __init__(self):
        self.refused = []
        self.accepted = {}

    def check(self, claim, size):
        photograph = bytearray(size)
        if photograph[size // 2] == 0:
            raise Refused(claim, "photograph of %d bytes is black" % size)
        return len(photograph)

    def take(self, claim, size):
        try:
            self.accepted[claim] = self.check(claim, size)
        except Refused as exc:
            self.refused.append(exc.with_traceback(None))

    def batch(self, claims):
        for claim in claims:
            self.take(claim, 2 * 1024 * 1024)


def main():
    intake, batches = Intake(), queue.Queue()
    intake.batch("claim-%d" % number for number in range(30))
    print("ready", flush=True)

    def branch():
        pause = threading.Event()
        for number in range(100_000):
            pause.wait(0.8)
            batches.put(["claim-%d" % (30 + number)])

    threading.Thread(target=branch, name="branch", daemon=True).start()
    while True:
        intake.batch(batches.get())


if __name__ == "__main__":
    main()
