"""Indexes a catalogue in shards. The processes agree on the vocabulary after each block of articles."""
import multiprocessing
from multiprocessing.connection import wait


class Hub:
    """Runs in the main process: an operation is done when every rank has asked for it."""

    def __init__(self, pipes):
        self.pipes = pipes
        self.asked = {}

    def serve(self):
        while self.pipes:
            for pipe in wait(self.pipes):
                try:
                    operation, value = pipe.recv()
                except EOFError:
                    self.pipes.remove(pipe)
                    continue
                self.asked.setdefault(operation, {})[pipe] = value
                if len(self.asked[operation]) == len(self.pipes):
                    self.answer(operation)

    def answer(self, operation):
        values = self.asked.pop(operation)
        result = sorted(set().union(*(value or () for value in values.values())))
        for pipe in values:
            pipe.send(result)


class Rank:
    def __init__(self, pipe):
        self.pipe = pipe

    def all_gather(self, words):
        self.pipe.send(("all_gather", words))
        return self.pipe.recv()

    def barrier(self):
        self.pipe.send(("barrier", None))
        self.pipe.recv()


def blocks(rank, size, articles, length):
    """Every size-th article, in blocks."""
    mine = range(rank, articles, size)
    return [mine[start : start + length] for start in range(0, len(mine), length)]


def index(rank, size, pipe, unused):
    for end in unused:
        end.close()
    group = Rank(pipe)
    vocabulary = set()
    group.barrier()
    for block in blocks(rank, size, articles=1201, length=30):  # CULPRIT
        words = {"word%d" % (article * 31 % 997) for article in block}
        vocabulary.update(group.all_gather(words))  # CULPRIT
    group.barrier()
    return len(vocabulary)


def main():
    context = multiprocessing.get_context("fork")
    size = 4
    ends = [context.Pipe() for _ in range(size)]
    for rank in range(size):
        unused = [near for near, _ in ends] + [far for other, (_, far) in enumerate(ends) if other != rank]
        context.Process(target=index, args=(rank, size, ends[rank][1], unused), daemon=True).start()
    for _, far in ends:
        far.close()
    print("ready", flush=True)
    Hub([near for near, _ in ends]).serve()


if __name__ == "__main__":
    main()
