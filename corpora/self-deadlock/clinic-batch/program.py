"""The nightly batch of a clinic: billing and labels are programs of their own, which run side by side."""
import subprocess
import sys
import threading


class Step(threading.Thread):
    def __init__(self, script):
        super().__init__(name=script, daemon=True)
        self.command = [sys.executable, script + ".py"]
        self.lines = []

    def run(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(self.command, universal_newlines=True, **pipes) as process:
            for line in process.stdout:
                self.lines.append(line.strip())


class Batch:
    def __init__(self, scripts):
        self.steps = [Step(script) for script in scripts]

    def run(self):
        for step in self.steps:
            step.start()
        for step in self.steps:
            step.join()
        return {step.name: len(step.lines) for step in self.steps}


def main():
    batch = Batch(["billing", "labels"])
    print("ready", flush=True)
    print(batch.run())


if __name__ == "__main__":
    main()
