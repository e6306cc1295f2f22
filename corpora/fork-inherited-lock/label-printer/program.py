"""Prints labels for parcels in a process of its own, while a thread takes new parcels in."""
import multiprocessing
import threading
import time

from loguru import logger


class Journal:
    """The journal on the label printer's flash card."""

    def __init__(self):
        self.lines = []
        self.writing = threading.Event()

    def write(self, line):
        self.writing.set()
        time.sleep(0.4)  # the card is slow
        self.lines.append(line)


class Intake(threading.Thread):
    def __init__(self):
        super().__init__(name="intake", daemon=True)
        self.count = 0

    def run(self):
        while True:
            self.count += 1
            logger.info("parcel {} taken in", self.count)


class LabelJob:
    def __init__(self, parcels):
        self.parcels = parcels

    def render(self, parcel):
        return "^XA^FO50,50^FD%s^FS^XZ" % parcel

    def run(self):
        logger.info("rendering {} labels", len(self.parcels))  # CULPRIT
        for parcel in self.parcels:
            self.render(parcel)


def main():
    journal = Journal()
    logger.remove()
    logger.add(journal.write)
    Intake().start()
    journal.writing.wait()
    job = LabelJob(["DE%09d" % number for number in range(40)])
    printer = multiprocessing.get_context("fork").Process(target=job.run, name="printer", daemon=True)  # CULPRIT
    print("ready", flush=True)
    printer.start()  # CULPRIT
    printer.join()


if __name__ == "__main__":
    main()
