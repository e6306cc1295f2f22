"""Prints boarding tickets: a marker file says who is at the printer, also to programs on other machines."""
import os
import tempfile

from filelock import SoftFileLock


class Printer:
    def __init__(self, spool):
        self.spool = spool
        self.marker = SoftFileLock(os.path.join(spool, "printer.lock"))  # CULPRIT

    def print_ticket(self, seat):
        with self.marker:  # CULPRIT
            with open(os.path.join(self.spool, seat + ".ticket"), "w") as file:
                file.write("seat %s\n" % seat)


class Desk:
    def __init__(self, printer):
        self.printer = printer

    def board(self, seats):
        for seat in seats:
            self.printer.print_ticket(seat)
        return len(seats)


def earlier_run(spool):
    """A run that the machine's power failure ended."""
    child = os.fork()
    if child == 0:
        marker = SoftFileLock(os.path.join(spool, "printer.lock"))
        marker.acquire()
        os._exit(1)
    os.waitpid(child, 0)


def main():
    with tempfile.TemporaryDirectory() as spool:
        earlier_run(spool)
        print("ready", flush=True)
        print(Desk(Printer(spool)).board(["12A", "12B"]), "boarded")


if __name__ == "__main__":
    main()
