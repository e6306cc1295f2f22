"""Read contracts whose clauses lie within clauses, and count what each of them obliges to."""
import random
import sys


class Draft:
    """Contracts as the drafting tool writes them: [title amount; clause clause ...]."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def contract(self):
        depth = self.rng.randrange(150, 350)
        text = []
        for level in range(depth):
            text.append("[annex%d %d; " % (level, self.rng.randrange(1000)))
            for number in range(self.rng.randrange(4)):
                text.append("[item%d %d;] " % (number, self.rng.randrange(100)))
        text.append("]" * depth)
        return "".join(text)


class Reader:
    def __init__(self, text):
        self.text = text
        self.position = 0

    def skip_blanks(self):
        while self.position < len(self.text) and self.text[self.position] == " ":
            self.position += 1

    def expect(self, sign):
        if self.text[self.position] != sign:
            raise ValueError("%r expected at %d" % (sign, self.position))
        self.position += 1

    def word(self, until):
        start = self.position
        while self.text[self.position] != until:
            self.position += 1
        return self.text[start : self.position]

    def clause(self):
        self.expect("[")
        self.word(" ")
        self.expect(" ")
        amount = int(self.word(";"))
        self.expect(";")
        return amount + self.clauses()

    def clauses(self):
        total = 0
        self.skip_blanks()
        while self.text[self.position] == "[":
            total += self.clause()
            self.skip_blanks()
        self.expect("]")
        return total


def main():
    sys.setrecursionlimit(5000)
    draft = Draft(3)
    print("ready", flush=True)
    obliged = 0
    for number in range(1, 10000000):
        reader = Reader(draft.contract())
        obliged += reader.clause()
        if number % 200 == 0:
            print("%d contracts, %d" % (number, obliged), file=sys.stderr)


if __name__ == "__main__":
    main()
