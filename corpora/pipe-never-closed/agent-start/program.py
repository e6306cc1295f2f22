"""Starts an agent with its launcher and prints what the launcher says."""
import subprocess
import sys

LAUNCHER = """
import subprocess, sys
agent = subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(45)"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
)
print("agent started")
"""


class Agent:
    def __init__(self, name):
        self.name = name

    def launch(self):
        output = subprocess.check_output([sys.executable, "-c", LAUNCHER, self.name])  # CULPRIT
        return output.decode().strip()


class Deployment:
    def __init__(self, agents):
        self.agents = agents

    def roll_out(self):
        for agent in self.agents:
            print(agent.name, agent.launch())  # CULPRIT


def main():
    deployment = Deployment([Agent("metrics"), Agent("backup")])
    print("ready", flush=True)
    deployment.roll_out()


if __name__ == "__main__":
    main()
