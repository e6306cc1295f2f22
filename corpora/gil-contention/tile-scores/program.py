"""Scores map tiles with four threads and keeps the best of them in a common table."""
import threading


class Best:
    def __init__(self):
        self.lock = threading.Lock()
        self.scores = {}

    def offer(self, region, score):
        with self.lock:
            if score > self.scores.get(region, -1):
                self.scores[region] = score


class Scorer(threading.Thread):
    def __init__(self, number, best):
        super().__init__(name="scorer-%d" % number, daemon=True)
        self.number = number
        self.best = best

    def score(self, tile):
        total = 0
        for row in range(120):
            for column in range(120):
                total += (tile * row ^ column * self.number) & 15
        return total

    def run(self):
        tile = self.number
        while True:
            tile += 4
            self.best.offer(tile % 50, self.score(tile))  # CULPRIT


def main():
    best = Best()
    scorers = [Scorer(number, best) for number in range(4)]
    for scorer in scorers:
        scorer.start()
    print("ready", flush=True)
    for scorer in scorers:
        scorer.join()


if __name__ == "__main__":
    main()
