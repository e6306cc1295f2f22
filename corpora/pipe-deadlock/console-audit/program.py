"""Audits the consoles of devices: logs in, asks for the full report, and waits for the session's exit status."""
import sys

import pexpect


class Console:
    def __init__(self, command, arguments):
        self.session = pexpect.spawn(command, arguments, timeout=10, encoding="utf-8", echo=False)

    def log_in(self, user):
        self.session.expect_exact("login: ")
        self.session.sendline(user)
        self.session.expect_exact("> ")

    def run(self, line):
        self.session.sendline(line)

    def leave(self):
        return self.session.wait()  # CULPRIT


class Audit:
    def __init__(self, devices):
        self.devices = devices
        self.results = {}

    def check(self, device):
        console = Console(sys.executable, ["device.py", device])
        console.log_in("auditor")
        console.run("report full")  # CULPRIT
        print("ready", flush=True)
        return console.leave()  # CULPRIT

    def run(self):
        for device in self.devices:
            self.results[device] = self.check(device)
        return self.results


def main():
    print(Audit(["switch-1", "switch-2"]).run())


if __name__ == "__main__":
    main()
