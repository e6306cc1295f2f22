"""Runs customers' pricing rules in an interpreter of their own, which is thrown away after each batch."""
import os
import sys

try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters

RULE = """
import _thread, os

def refresh(gate=_thread.allocate_lock()):
    '''Holds the rates until they are asked for again.'''
    gate.acquire()
    os.write({begun}, b"1")
    gate.acquire()

rates = dict(eur=1.0, usd=1.08)
_thread.start_new_thread(refresh, ())
"""


class Sandbox:
    def __init__(self):
        try:
            self.interpreter = interpreters.create(isolated=False)
        except TypeError:
            self.interpreter = interpreters.create()

    def run(self, rule):
        interpreters.run_string(self.interpreter, rule)

    def discard(self):
        interpreters.destroy(self.interpreter)  # CULPRIT


class Batch:
    def __init__(self, rules):
        self.rules = rules

    def price(self):
        for rule in self.rules:
            sandbox = Sandbox()
            sandbox.run(rule)
            self.wait()
            sandbox.discard()

    def wait(self):
        return os.read(source, 1)


source, sink = os.pipe()


def main():
    batch = Batch([RULE.format(begun=sink)])
    print("ready", flush=True)
    batch.price()
    return 0


if __name__ == "__main__":
    sys.exit(main())
