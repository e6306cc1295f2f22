"""Walks the day's exchange rates with callbacks as the bank's library wants them; a callback may return a remark."""
import ctypes

Remark = ctypes.CFUNCTYPE(ctypes.py_object, ctypes.c_double)  # CULPRIT


class RateBook:
    def __init__(self):
        self.low = float("inf")
        self.high = 0.0

    def watch(self, rate):
        self.low = min(self.low, rate)
        self.high = max(self.high, rate)
        return "zero" if rate == 0 else None  # CULPRIT


class Walker:
    def __init__(self, book):
        self.callback = Remark(book.watch)

    def walk(self, rates):
        remarks = []
        for rate in rates:
            remark = self.callback(rate)  # CULPRIT
            if remark is not None:
                remarks.append(remark)
        return remarks


def rates(count):
    for number in range(count):
        yield 1.0 + (number * 7919 % 1000) / 10000


def main():
    book = RateBook()
    walker = Walker(book)
    print("ready", flush=True)
    remarks = walker.walk(rates(60000))
    print("%.4f to %.4f, %d remarks" % (book.low, book.high, len(remarks)))


if __name__ == "__main__":
    main()
