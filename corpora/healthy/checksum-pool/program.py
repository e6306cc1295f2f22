"""Checksums of large blocks, in threads: hashlib lets go of the interpreter lock."""
import concurrent.futures
import hashlib


class Verifier:
    def __init__(self, workers):
        self.pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="verify")
        self.block = bytes(range(256)) * 40_000

    def verify(self, number):
        return number, hashlib.sha256(self.block).hexdigest()

    def run(self, batches):
        for batch in range(batches):
            done = list(self.pool.map(self.verify, range(batch * 24, batch * 24 + 24)))
            print("verified", done[-1][0] + 1, flush=True)


def main():
    print("ready", flush=True)
    Verifier(workers=2).run(100_000)


if __name__ == "__main__":
    main()
