"""Indexes the words of a newspaper archive; keeps long posting lists, which grow and are cut down again."""
import hashlib


def article(number):
    digest = hashlib.sha256(b"%d" % number).hexdigest()
    return [digest[start:start + 3] for start in range(0, 60, 2)]


class Index:
    LIMIT = 2000

    def __init__(self):
        self.postings = {}

    def add(self, number, words):
        for word in words:
            self.postings.setdefault(word, []).append(number)

    def cut(self):
        for word, numbers in self.postings.items():
            if len(numbers) > self.LIMIT:
                self.postings[word] = numbers[-self.LIMIT // 2:]

    def export(self):
        rows = ["%s %s" % (word, " ".join(map(str, numbers))) for word, numbers in sorted(self.postings.items())]
        return "\n".join(rows)


def main():
    index = Index()
    size = 0
    print("ready", flush=True)
    for number in range(100000000):  # CULPRIT
        index.add(number, article(number))
        if number % 400 == 0:
            index.cut()
            size = max(size, len(index.export()))
    print("%d characters at most" % size)


if __name__ == "__main__":
    main()
