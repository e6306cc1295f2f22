"""Prints the longest chain of command of a company; names are compared by the rules of the C locale's collation."""
import ctypes
import faulthandler
import locale

libc = ctypes.CDLL(None)
libc.strcoll.argtypes = [ctypes.c_char_p, ctypes.c_char_p]


class Person:
    def __init__(self, name, deputy=None):
        self.name = name
        self.reports = []
        self.deputy = deputy

    def add(self, other):
        self.reports.append(other)
        return other


def encoded(person):
    return person.name.encode() if person.name else None


def before(left, right):
    return libc.strcoll(encoded(left), encoded(right)) < 0  # CULPRIT


class Chart:
    def __init__(self, root):
        self.root = root

    def depth(self, person):
        """Levels below a person; the deputy stands first among equals."""
        if person.deputy is not None and person.reports:
            return self.first(person.deputy, person.reports[0])
        return 1 + max(map(self.depth, person.reports), default=0)

    def first(self, deputy, report):
        return 1 if before(deputy, report) else 2


def company(levels):
    root = person = Person("Abadi")
    for level in range(levels):
        person = person.add(Person("Level %03d" % level))
    person.deputy = Person(None)  # CULPRIT
    person.add(Person("Zuckmayer"))
    return root


def main():
    faulthandler.enable()
    locale.setlocale(locale.LC_COLLATE, "C")
    chart = Chart(company(levels=280))
    print("ready", flush=True)
    print("%d levels" % chart.depth(chart.root))


if __name__ == "__main__":
    main()
