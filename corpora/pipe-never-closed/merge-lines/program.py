"""Splits a count over child processes, which answer through one pipe."""
import os
import sys


class Answers:
    """Lines from all the workers, in the order of their arrival."""

    def __init__(self):
        self.reader, self.writer = os.pipe()  # CULPRIT

    def send(self, line):
        os.write(self.writer, line.encode() + b"\n")

    def __iter__(self):
        with os.fdopen(self.reader) as lines:
            for line in lines:  # CULPRIT
                yield line.rstrip("\n")


class Count:
    def __init__(self, parts):
        self.parts = parts
        self.children = []

    def start(self, answers):
        for part in self.parts:
            child = os.fork()
            if child == 0:
                answers.send(str(sum(part)))
                os._exit(0)
            self.children.append(child)

    def finish(self):
        for child in self.children:
            os.waitpid(child, 0)


def main():
    answers = Answers()
    count = Count([range(n, n + 1000) for n in range(0, 4000, 1000)])
    count.start(answers)
    print("ready", flush=True)
    print("total", sum(int(line) for line in answers))
    count.finish()


if __name__ == "__main__":
    sys.exit(main())
