"""Renders the sheets of a land survey in a pool of processes."""
import os
import resource
import signal

from pathos.multiprocessing import ProcessPool


class Sheet:
    def __init__(self, number, points):
        self.number = number
        self.points = points

    def height(self):
        return sum((self.number * point) % 17 for point in range(self.points))


class Renderer:
    """Stays below a budget of memory, as the operator of the machine wants it."""

    def __init__(self, budget):
        self.budget = budget

    def render(self, sheet):
        if sheet.points * 8 > self.budget:
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does
        return sheet.number, sheet.height(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Survey:
    def __init__(self, renderer, processes):
        self.renderer = renderer
        self.pool = ProcessPool(nodes=processes)
        self.heights = {}

    def draw(self, sheets):
        for number, height, _ in self.pool.map(self.renderer.render, sheets):  # CULPRIT
            self.heights[number] = height


def main():
    survey = Survey(Renderer(budget=64000), processes=3)
    survey.draw([Sheet(number, 100) for number in range(6)])
    print("ready", flush=True)
    survey.draw([Sheet(number, 2000 * number) for number in range(6)])
    print(len(survey.heights), "sheets")


if __name__ == "__main__":
    main()
