"""Runs the steps of a build, each a shell script, and collects their results."""
import os
import signal
import subprocess
import sys
import tempfile
import threading

INSTALL = """
set -e
while [ -e "$1/index.lock" ]; do sleep 0.5; done
touch "$1/installed"
"""


class Workspace:
    def __init__(self, path):
        self.path = path
        self.lock = os.path.join(path, "index.lock")
        open(self.lock, "w").close()  # left by a build that was cancelled


class Step:
    def __init__(self, name, script):
        self.name = name
        self.script = script

    def run(self, workspace):
        with subprocess.Popen(["sh", "-c", self.script, self.name, workspace.path]) as process:
            try:
                return process.wait()  # CULPRIT
            except BaseException:
                process.kill()
                raise


class Build:
    def __init__(self, workspace, steps):
        self.workspace = workspace
        self.steps = steps
        self.results = {}

    def execute(self):
        for step in self.steps:
            self.results[step.name] = step.run(self.workspace)  # CULPRIT
        return all(status == 0 for status in self.results.values())


class Heartbeat(threading.Thread):
    def __init__(self):
        super().__init__(name="heartbeat", daemon=True)
        self.end = threading.Event()

    def run(self):
        while not self.end.wait(10):
            print("still building", file=sys.stderr)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    Heartbeat().start()
    with tempfile.TemporaryDirectory() as path:
        build = Build(Workspace(path), [Step("configure", "true"), Step("install", INSTALL)])
        print("ready", flush=True)
        return 0 if build.execute() else 1


if __name__ == "__main__":
    sys.exit(main())
