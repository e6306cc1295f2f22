"""Scores delivery routes for the planner; the work is spread over a thread pool."""
import concurrent.futures
import random


class Stop:
    __slots__ = ("x", "y", "weight")

    def __init__(self, rng):
        self.x, self.y, self.weight = rng.random(), rng.random(), rng.randrange(1, 9)


class Metric:
    def __init__(self, scale):
        self.scale = scale

    def between(self, a, b):
        return ((a.x - b.x) ** 2 + (a.y - b.y) ** 2) ** 0.5 * self.scale + b.weight  # CULPRIT


class Tour:
    def __init__(self, stops, metric):
        self.stops = stops
        self.metric = metric

    def length(self):
        return sum(self.metric.between(a, b) for a, b in zip(self.stops, self.stops[1:]))  # CULPRIT

    def improved(self, rng):
        best = self.length()
        for _ in range(200_000):  # CULPRIT
            i, j = sorted(rng.sample(range(len(self.stops)), 2))
            self.stops[i], self.stops[j] = self.stops[j], self.stops[i]
            now = self.length()
            if now < best:
                best = now
            else:
                self.stops[i], self.stops[j] = self.stops[j], self.stops[i]
        return best


class Planner:
    def __init__(self, workers):
        self.pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="planner")

    def plan(self, depot, count):
        rng = random.Random(depot)
        tour = Tour([Stop(rng) for _ in range(count)], Metric(scale=100.0))
        return depot, tour.improved(rng)

    def plan_all(self, depots):
        jobs = [self.pool.submit(self.plan, depot, 120) for depot in depots]
        print("ready", flush=True)
        return dict(job.result() for job in concurrent.futures.as_completed(jobs))


def main():
    print(Planner(workers=6).plan_all(range(24)))


if __name__ == "__main__":
    main()
