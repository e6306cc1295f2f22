"""Searches routes in several processes and sorts what they find."""
import multiprocessing


class Route:
    def __init__(self, start, stops):
        self.start = start
        self.stops = stops

    def length(self):
        return sum(self.stops)


def search(start, count, found):
    for number in range(count):
        found.put(Route(start, [(start + number * k) % 97 for k in range(30)]))


class Search:
    def __init__(self, context, starts):
        self.found = context.Queue()
        self.workers = [
            context.Process(target=search, args=(start, 800, self.found), name="search-%d" % start) for start in starts
        ]

    def __enter__(self):
        for worker in self.workers:
            worker.start()
        return self

    def __exit__(self, *exc):
        for worker in self.workers:
            worker.join()  # CULPRIT

    def routes(self):
        while not self.found.empty():
            yield self.found.get()


def main():
    with Search(multiprocessing.get_context("spawn"), (1, 5)) as everything:
        print("ready", flush=True)
    print(min(route.length() for route in everything.routes()))


if __name__ == "__main__":
    main()
