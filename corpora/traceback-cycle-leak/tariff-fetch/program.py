"""Loads tariff tables from carriers, with retries, and shows on a page which carriers are behind."""
import collections
import threading

import tenacity

Outcome = collections.namedtuple("Outcome", "carrier attempts state")


class CarrierDown(Exception):
    pass


class Tariffs:
    def __init__(self):
        self.tables = {}
        self.history = []

    def remember(self, retry_state):
        carrier = retry_state.args[0]
        self.history.append(Outcome(carrier, retry_state.attempt_number, retry_state))  # CULPRIT
        return None

    def retrying(self):
        return tenacity.Retrying(
            stop=tenacity.stop_after_attempt(3),
            wait=tenacity.wait_none(),
            retry=tenacity.retry_if_exception_type(CarrierDown),
            retry_error_callback=self.remember,
        )

    def load(self, carrier):
        table = self.retrying()(fetch_table, carrier)
        if table is not None:
            self.tables[carrier] = table


def fetch_table(carrier):
    raw = bytearray(1024 * 1024)
    rows = parse_rows(carrier, raw)
    return dict(rows)


def parse_rows(carrier, raw):
    head = bytes(raw[:16])
    if not head.strip(b"\0"):
        raise CarrierDown("%s answered with %d empty bytes" % (carrier, len(raw)))
    for start in range(0, len(raw), 16):
        row = raw[start : start + 16]
        return [(row[0], row[1])]


def page(tariffs):
    return ["%s: %d attempts" % (outcome.carrier, outcome.attempts) for outcome in tariffs.history[-5:]]


def main():
    tariffs = Tariffs()
    for number in range(45):
        tariffs.load("carrier-%02d" % number)
    print("ready", flush=True)
    closing = threading.Event()
    number = 45
    while not closing.wait(2.0):
        tariffs.load("carrier-%02d" % number)
        print("; ".join(page(tariffs)), flush=True)
        number += 1


if __name__ == "__main__":
    main()
