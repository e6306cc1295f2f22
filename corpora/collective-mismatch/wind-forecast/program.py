"""Trains a wind forecast on three processes and writes a checkpoint every few steps."""
import multiprocessing
import os
import pickle
import tempfile

from comm import Communicator, Link, star


class Forecast:
    def __init__(self, stations):
        self.weights = [0.1] * stations

    def gradient(self, batch):
        return sum(speed * weight for speed, weight in zip(batch, self.weights)) / len(batch)

    def apply(self, gradient):
        self.weights = [weight - 0.001 * gradient for weight in self.weights]


class Checkpoints:
    def __init__(self, comm, folder, every):
        self.comm = comm
        self.folder = folder
        self.every = every
        self.best = float("inf")

    def improved(self, loss):
        if loss < self.best:
            self.best = loss
            return True
        return False

    def maybe_save(self, step, model, loss):
        if step % self.every == 0 and self.improved(loss):  # CULPRIT
            self.save(step, model)

    def save(self, step, model):
        if self.comm.rank == 0:
            with open(os.path.join(self.folder, "step-%d" % step), "wb") as file:
                pickle.dump(model.weights, file)
        self.comm.barrier()  # CULPRIT


class Trainer:
    def __init__(self, comm, folder):
        self.comm = comm
        self.model = Forecast(stations=64)
        self.checkpoints = Checkpoints(comm, folder, every=4)

    def local_loss(self, step):
        return 10.0 / (step + 1) if self.comm.rank != 1 or step < 12 else 9.0 + step

    def batch(self, step):
        return [(step * 7 + station * 3 + self.comm.rank) % 23 for station in range(64)]

    def step(self, step):
        gradient = self.comm.all_reduce(self.model.gradient(self.batch(step)))
        self.model.apply(gradient / 3.0)
        self.checkpoints.maybe_save(step, self.model, self.local_loss(step))

    def train(self, steps):
        self.comm.broadcast(self.model.weights if self.comm.rank == 0 else None)
        for step in range(steps):
            self.step(step)


def rank_main(rank, sockets, others, folder):
    for sock in others:
        sock.close()
    Trainer(Communicator(rank, [Link(sock) for sock in sockets]), folder).train(steps=2000)


def main():
    context = multiprocessing.get_context("fork")
    near, far = star(3)
    with tempfile.TemporaryDirectory() as folder:
        workers = []
        for rank in (1, 2):
            mine = far[rank - 1]
            others = near + [sock for sock in far if sock is not mine]
            workers.append(context.Process(target=rank_main, args=(rank, [mine], others, folder), daemon=True))
        for worker in workers:
            worker.start()
        print("ready", flush=True)
        rank_main(0, near, far, folder)
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    main()
