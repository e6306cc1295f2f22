"""Imports the movements of ships; every process writes to one log, which an archive takes once it is open."""
import multiprocessing
import threading

from loguru import logger


class Archive:
    """Where the lines end up; it has to be opened first."""

    def __init__(self):
        self.opened = threading.Event()
        self.lines = []

    def write(self, message):
        self.opened.wait()
        self.lines.append(message.record["message"])


class Importer:
    def __init__(self, context, movements):
        self.started = context.Event()
        self.process = context.Process(target=self.run, args=(movements,), daemon=True)

    def run(self, movements):
        logger.info("import begins")
        self.started.set()
        logger.info("imported: {}", movements)

    def finish_within(self, seconds):
        self.process.start()
        self.started.wait()
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()  # CULPRIT
            self.process.join()
        return self.process.exitcode


def main():
    archive = Archive()
    context = multiprocessing.get_context("fork")
    logger.remove()
    logger.add(archive.write, enqueue=True, context=context)  # CULPRIT
    movements = ["ship %d at berth %d" % (number, number % 12) for number in range(15000)]
    code = Importer(context, movements).finish_within(0.5)
    archive.opened.set()
    print("ready", flush=True)
    logger.warning("the import ended with {}", code)
    logger.complete()
    print(archive.lines[-1])


if __name__ == "__main__":
    main()
