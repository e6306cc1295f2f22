"""Makes previews in worker processes; a preview that takes too long is terminated and skipped."""
import multiprocessing
import time


class Printer:
    """The one printer, for all processes."""

    def __init__(self, context):
        self.free = context.Semaphore(1)

    def print(self, pages):
        self.free.acquire()  # CULPRIT
        for _ in range(pages):
            time.sleep(0.02)
        self.free.release()


def preview(printer, begun, pages):
    begun.set()
    printer.print(pages)


class Previews:
    def __init__(self, context, limit):
        self.context = context
        self.limit = limit
        self.printer = Printer(context)
        self.skipped = []

    def make(self, name, pages):
        begun = self.context.Event()
        process = self.context.Process(target=preview, args=(self.printer, begun, pages), name=name)
        process.start()
        begun.wait()
        process.join(self.limit)
        if process.is_alive():
            process.terminate()  # CULPRIT
            process.join()
            self.skipped.append(name)


def main():
    previews = Previews(multiprocessing.get_context("spawn"), limit=0.3)
    previews.make("catalogue", pages=500)
    print("ready", flush=True)
    previews.printer.print(1)
    print("skipped", previews.skipped)


if __name__ == "__main__":
    main()
