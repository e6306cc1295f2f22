"""Answers price questions with a catalog that plugins may extend."""
import threading


class Answer(threading.Thread):
    def __init__(self, article):
        super().__init__(name="answer-%s" % article, daemon=True)
        self.article = article
        self.price = None

    def run(self):
        import catalog

        self.price = catalog.price(self.article)


class Desk:
    def __init__(self, articles):
        self.answers = [Answer(article) for article in articles]

    def open(self):
        for answer in self.answers:
            answer.start()

    def close(self):
        for answer in self.answers:
            answer.join()
            print(answer.article, answer.price)


def main():
    print("ready", flush=True)
    desk = Desk(["rope", "sail", "tar"])
    desk.open()
    desk.close()


if __name__ == "__main__":
    main()
