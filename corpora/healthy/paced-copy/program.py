"""Waits for a dump to end, while a thread copies it at the pace of a rate limit."""
import subprocess
import sys
import threading
import time

DUMP = "for n in range(10**6): print(n, 'row of the dump', sep=';')"


class Copy(threading.Thread):
    def __init__(self, source, bytes_per_second):
        super().__init__(name="copy", daemon=True)
        self.source = source
        self.pace = bytes_per_second
        self.copied = 0

    def run(self):
        while True:
            block = self.source.read(self.pace // 4)
            if not block:
                break
            self.copied += len(block)
            print("copied", self.copied, flush=True)
            time.sleep(0.25)


class Dump:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.copy = Copy(self.process.stdout, 10000)

    def run(self):
        self.copy.start()
        return self.process.wait()


def main():
    dump = Dump([sys.executable, "-c", DUMP])
    print("ready", flush=True)
    return dump.run()


if __name__ == "__main__":
    sys.exit(main())
