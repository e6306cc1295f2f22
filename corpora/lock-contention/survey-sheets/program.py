"""Loads the sheets of a land survey in parallel and adds up their areas."""
import concurrent.futures
import functools
import time


class Register:
    """Stands in for the land register's service."""

    def __init__(self, delay):
        self.delay = delay

    def parcels(self, sheet):
        time.sleep(self.delay)
        return [(sheet * 7 + n) % 90 for n in range(40)]


class Sheet:
    def __init__(self, number, register):
        self.number = number
        self.register = register

    @functools.cached_property  # CULPRIT
    def parcels(self):
        return self.register.parcels(self.number)  # CULPRIT

    @property
    def area(self):
        return sum(self.parcels)


class Survey:
    def __init__(self, count, register):
        self.sheets = [Sheet(number, register) for number in range(count)]

    def area(self, workers):
        with concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="sheet") as pool:
            return sum(pool.map(lambda sheet: sheet.area, self.sheets))


def main():
    survey = Survey(6000, Register(delay=0.1))
    print("ready", flush=True)
    print("square metres:", survey.area(workers=10))


if __name__ == "__main__":
    main()
