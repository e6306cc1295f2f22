"""Takes snapshots of bus routes so that a restarted planner can go on where it stopped."""
import io
import pickle
import sys
import threading


class Stop:
    def __init__(self, number, minutes):
        self.number = number
        self.minutes = minutes
        self.following = None

    def then(self, number, minutes):
        self.following = Stop(number, minutes)
        return self.following


class Route:
    def __init__(self, name):
        self.name = name
        self.first = None
        self.length = 0

    def build(self, stops):
        last = self.first = Stop(0, 0)
        for number in range(1, stops):
            last = last.then(number, number * 2 % 11)
        self.length = stops
        return self


class Snapshots:
    DEPTH = 10 ** 6

    def __init__(self):
        self.lock = threading.Lock()
        self.saved = {}
        sys.setrecursionlimit(self.DEPTH)  # CULPRIT

    def save(self, route):
        with self.lock:
            self.saved[route.name] = self.encode(route)

    def encode(self, route):
        buffer = io.BytesIO()
        pickle.Pickler(buffer, protocol=4).dump(route)  # CULPRIT
        return buffer.getvalue()


class Planner:
    def __init__(self, snapshots):
        self.snapshots = snapshots
        self.routes = []

    def plan(self, name, stops):
        route = Route(name).build(stops)
        self.routes.append(route)
        self.snapshots.save(route)
        return route


def main():
    planner = Planner(Snapshots())
    planner.plan("12", stops=40)
    print("ready", flush=True)
    planner.plan("all-stops", stops=150000)
    for route in planner.routes:
        print(route.name, route.length, len(planner.snapshots.saved[route.name]))


if __name__ == "__main__":
    main()
