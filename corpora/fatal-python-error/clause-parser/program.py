"""Reads contract clauses; where a clause is nested too deep for one reading, the shorter reading is tried."""
import sys


class Clause:
    def __init__(self, text, inner=None):
        self.text = text
        self.inner = inner


class Reader:
    def __init__(self):
        self.read = 0

    def full(self, clause):
        """The clause and all that it contains."""
        self.read += 1
        try:
            return clause.text + "; " + self.inner(clause)  # CULPRIT
        except RecursionError:
            return self.short(clause)  # CULPRIT

    def inner(self, clause):
        return self.full(clause.inner) if clause.inner is not None else ""

    def short(self, clause):
        """Only the first words of every clause."""
        words = clause.text.split()[0]
        return words + (", " + self.short(clause.inner) if clause.inner is not None else "")


def contract(depth):
    clause = None
    for number in range(depth, 0, -1):
        clause = Clause("clause %d stands" % number, clause)
    return clause


def main():
    reader = Reader()
    short = reader.full(contract(20))
    print("ready", flush=True)
    text = reader.full(contract(5000))
    print(len(short), len(text), file=sys.stderr)


if __name__ == "__main__":
    main()
