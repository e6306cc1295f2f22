"""Runs the setup of a theme under a terminal, so that its output has colours, and logs what it prints."""
import os
import pty
import subprocess
import sys


class Setup:
    """The interactive part, in a process of its own."""

    def __init__(self, theme):
        self.theme = theme

    def confirm(self, question):
        return input(question + " [y/N] ").lower() == "y"  # CULPRIT

    def run(self):
        print("installing", self.theme, flush=True)
        if self.confirm("overwrite the settings?"):
            print("done")


class Terminal:
    def __init__(self, command):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)

    def lines(self):
        while True:
            try:
                yield os.read(self.master, 4096).decode()
            except OSError:  # the last process at the terminal has gone
                return


def main():
    if len(sys.argv) > 1:
        return Setup(sys.argv[1]).run()
    terminal = Terminal([sys.executable, __file__, "solarized"])
    print("ready", flush=True)
    for text in terminal.lines():
        print("log:", text.strip(), flush=True)
    return terminal.process.wait()


if __name__ == "__main__":
    sys.exit(main())
