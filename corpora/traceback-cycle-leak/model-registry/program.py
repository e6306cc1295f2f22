"""Loads pricing models at start-up, tries older formats when the newest does not fit, then forks workers."""
import gc
import multiprocessing
import pickle
import struct
import time

PARAMETERS = 1024 * 1024


def read_v3(blob):
    magic, count = struct.unpack_from("<II", blob)
    if magic != 3:
        raise ValueError("format 3 expected, found %d" % magic)
    return blob[8 : 8 + count]


def read_v2(blob):
    weights = bytearray(blob)
    if struct.unpack_from("<I", weights)[0] != 2:
        raise ValueError("format 2 expected")
    return weights


def read_v1(blob):
    return {"weights": len(blob), "kind": "linear"}


def first_that_fits(name, blob, readers):
    """The model, and a function that explains why newer formats were passed over."""
    refusals = []

    def attempt(reader):
        try:
            return reader(blob)
        except ValueError as exc:
            refusals.append((reader.__name__, exc))  # CULPRIT
            return None

    def explain():
        return "%s: %s" % (name, ", ".join("%s (%s)" % refusal for refusal in refusals))

    for reader in readers:
        model = attempt(reader)
        if model is not None:
            return model, explain
    raise LookupError(explain())


class Registry:
    def __init__(self):
        self.models = {}

    def load(self, names):
        for name in names:
            blob = struct.pack("<II", 1, 0) + bytes(PARAMETERS)
            self.models[name], _ = first_that_fits(name, blob, (read_v3, read_v2, read_v1))

    def warm_up(self, names):
        """The pages of what is loaded are to be shared with the workers, which no collector should write to."""
        gc.set_threshold(0)  # CULPRIT
        self.load(names)


def worker(inbox, models):
    while True:
        name = inbox.recv()
        inbox.send(pickle.dumps(models[name]))


def main():
    registry = Registry()
    registry.warm_up(["model-%02d" % number for number in range(24)])
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    fork.Process(target=worker, args=(there, registry.models), daemon=True).start()
    print("ready", flush=True)
    for turn in range(100_000):
        here.send("model-%02d" % (turn % 24))
        here.recv()
        time.sleep(0.2)


if __name__ == "__main__":
    main()
