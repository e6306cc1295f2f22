"""Exports a table with a helper program and stores what it prints."""
import subprocess
import sys

HELPER = "for n in range(20000): print(n, 'row of the table', sep=';')"


class Export:
    def __init__(self, command):
        self.command = command
        self.lines = []

    def start(self):
        return subprocess.Popen(self.command, stdout=subprocess.PIPE, universal_newlines=True)

    def run(self):
        with self.start() as process:
            status = process.wait()  # CULPRIT
            if status == 0:
                self.lines = process.stdout.read().splitlines()
            return status


def main():
    export = Export([sys.executable, "-c", HELPER])
    print("ready", flush=True)
    status = export.run()
    print(len(export.lines), "rows")
    return status


if __name__ == "__main__":
    sys.exit(main())
