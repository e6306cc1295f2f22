"""Numbers the lines of a slow measurement, as a shell pipeline would: measure | number."""
import subprocess
import sys
import time


def measure():
    value = 0
    while True:
        value += 1
        print("value", value, flush=True)
        time.sleep(0.7)


def number():
    for count, line in enumerate(sys.stdin, 1):
        print(count, line.strip(), flush=True)


class Pipeline:
    def __init__(self, *stages):
        self.processes = []
        source = subprocess.DEVNULL
        for stage in stages:
            last = stage is stages[-1]
            process = subprocess.Popen(
                [sys.executable, __file__, stage], stdin=source, stdout=None if last else subprocess.PIPE
            )
            if source is not subprocess.DEVNULL:
                source.close()
            source = process.stdout
            self.processes.append(process)

    def wait(self):
        return [process.wait() for process in self.processes]


def main(arguments):
    if arguments:
        return {"measure": measure, "number": number}[arguments[0]]()
    pipeline = Pipeline("measure", "number")
    print("ready", flush=True)
    return max(pipeline.wait())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
