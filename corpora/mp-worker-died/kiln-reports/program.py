"""Reports of a pottery's kilns: firings are evaluated in processes, the stock of glazes is kept in a shared file."""
import fcntl
import multiprocessing
import os
import tempfile
import threading


def evaluate(firing):
    kiln, degrees = firing
    if degrees > 1400:
        os._exit(9)  # as the evaluation's native part does
    return kiln, degrees - 1060


class Evaluation(threading.Thread):
    def __init__(self, pool, firings):
        super().__init__(name="evaluation", daemon=True)
        self.pool = pool
        self.firings = firings
        self.deviations = {}

    def run(self):
        for kiln, deviation in self.pool.imap_unordered(evaluate, self.firings):  # CULPRIT
            self.deviations[kiln] = deviation


class Stock:
    def __init__(self, path):
        self.path = path

    def take(self, glaze, grams):
        with open(self.path, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # CULPRIT
            file.write("%s -%d\n" % (glaze, grams))


def weigh(stock, scales, ready):
    """The scales' process: writes what is put on them; has the file to itself."""
    with open(stock.path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # CULPRIT
        ready.send(True)
        while True:
            file.write("%s +%d\n" % scales.recv())
            file.flush()


def main():
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        stock = Stock(os.path.join(folder, "glazes"))
        pool = context.Pool(2)
        scales, _display = context.Pipe()
        ready, said = context.Pipe(duplex=False)
        context.Process(target=weigh, args=(stock, scales, said), name="scales", daemon=True).start()
        ready.recv()
        firings = [("north", 1080), ("south", 1421), ("east", 1049), ("west", 1066)]
        jobs = [Evaluation(pool, firings)]
        jobs.append(threading.Thread(target=stock.take, args=("celadon", 400), name="glazing", daemon=True))
        for job in jobs:
            job.start()
        print("ready", flush=True)
        for job in jobs:
            job.join()
        print(jobs[0].deviations)


if __name__ == "__main__":
    main()
