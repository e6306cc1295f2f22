"""Declarations are checked against the rules of their tariff while they come in from the broker's mailbox."""
import queue
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

RULES = {
    "declarant": [{"kind": "length", "most": 80}, {"kind": "pattern", "text": r"[\w .,&-]+"}],
    "commodity": [{"kind": "pattern", "text": r"\d{4}(\.\d{2}){0,3}"}],
    "marks": [
        {"kind": "length", "most": 400},
        {"kind": "pattern", "text": r"(?:(?:\s*[A-Z0-9]+\s*)*(?:/|,|;)?)*\."},  # CULPRIT
    ],
}


class Length:
    def __init__(self, most):
        self.most = most

    def accepts(self, value):
        return len(value) <= self.most


class Pattern:
    def __init__(self, text):
        self.compiled = re.compile(text)

    def accepts(self, value):
        return self.compiled.fullmatch(value) is not None  # CULPRIT


KINDS = {"length": Length, "pattern": Pattern}


class Field:
    def __init__(self, name, rules):
        self.name = name
        self.checks = [self.build(dict(rule)) for rule in rules]

    @staticmethod
    def build(rule):
        return KINDS[rule.pop("kind")](**rule)

    def clean(self, value):
        return all(check.accepts(value) for check in self.checks)


class Tariff:
    def __init__(self, rules):
        self.fields = [Field(name, checks) for name, checks in rules.items()]

    def objections(self, declaration):
        return [field.name for field in self.fields if not field.clean(declaration.get(field.name, ""))]


class Desk:
    """Takes declarations from the tray and hands them to the clerks."""

    def __init__(self, tariff, clerks):
        self.tariff = tariff
        self.tray = queue.Queue()
        self.pool = ThreadPoolExecutor(clerks, thread_name_prefix="clerk")
        self.last_seen = time.monotonic()

    def examine(self, declaration):
        if declaration["last"]:
            print("ready", flush=True)
        return self.tariff.objections(declaration)

    def watch_mailbox(self):
        while True:
            time.sleep(0.05)
            self.last_seen = time.monotonic()

    def work(self):
        threading.Thread(target=self.watch_mailbox, name="mailbox", daemon=True).start()
        pending = []
        while True:
            declaration = self.tray.get()
            pending.append(self.pool.submit(self.examine, declaration))
            if declaration["last"]:
                return [future.result() for future in pending]


def main():
    desk = Desk(Tariff(RULES), clerks=2)
    marks = ["LOT 12/BOX 4.", "CARTON 1, CARTON 2.", "PALLET 3 HAMBURG.", "KOLLI 18 ANTWERPEN BREMEN NORDENHAM EMDEN KAI 4"]
    for number, text in enumerate(marks, 1):
        desk.tray.put(
            {
                "declarant": "Nordsee Spedition & Co.",
                "commodity": "8471.30",
                "marks": text,
                "last": number == len(marks),
            }
        )
    for objections in desk.work():
        print(objections or "accepted")


if __name__ == "__main__":
    main()
