"""Indexes a text in a process of its own and gets the index through a queue."""
import multiprocessing


class Indexer:
    def __init__(self, context):
        self.context = context
        self.results = context.Queue()

    def index(self, text):
        places = {}
        for place, word in enumerate(text.split()):
            places.setdefault(word, []).append(place)
        self.results.put(places)  # CULPRIT

    def run(self, text):
        process = self.context.Process(target=self.index, args=(text,), name="indexer")
        process.start()
        process.join()  # CULPRIT
        return self.results.get()


def main():
    text = " ".join("word%d" % (n % 5000) for n in range(60000))
    print("ready", flush=True)
    print(len(Indexer(multiprocessing.get_context("fork")).run(text)), "words")


if __name__ == "__main__":
    main()
