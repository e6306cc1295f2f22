"""Runs the steps of a roll-out on a terminal of their own, each in a process group of its own, and keeps a log.

A step in its own group can be ended as a whole, with all that it started.
"""
import os
import pty
import subprocess
import sys

STEPS = ["check.py", "unlock.py"]


class Runner:
    def __init__(self, folder, steps):
        self.folder = folder
        self.steps = steps

    def run(self):
        for step in self.steps:
            process = subprocess.Popen([sys.executable, os.path.join(self.folder, step)], preexec_fn=os.setpgrp)  # CULPRIT
            if process.wait() != 0:
                return 1
        return 0


class Log:
    def __init__(self):
        self.lines = []

    def follow(self, terminal):
        rest = b""
        while True:
            try:
                data = os.read(terminal, 4096)
            except OSError:
                data = b""
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            self.lines += lines
            if any(line.startswith(b"unlocking") for line in lines):
                print("ready", flush=True)


def main():
    runner = Runner(os.path.dirname(os.path.abspath(__file__)), STEPS)
    log = Log()
    pid, terminal = pty.fork()
    if not pid:
        os._exit(runner.run())
    log.follow(terminal)
    _, status = os.waitpid(pid, 0)
    print(len(log.lines), "lines,", "done" if status == 0 else "not done")


if __name__ == "__main__":
    main()
