"""A survey in steps, each a program of its own; what they say is kept for the record when all have ended."""

import subprocess
import sys
import threading

MEASURE = """
for row in range(4000):
    print("row %d: crown %.2f m, stem %.2f m" % (row, 2.5 + row % 7, 0.1 + row % 3))
"""


class Tool:
    def __init__(self, name, source):
        self.name = name
        self.source = source

    def command(self):
        return [sys.executable, "-c", self.source]


class Step:
    def __init__(self, tool):
        self.tool = tool
        self.running = None
        self.record = b""

    def start(self):
        self.running = subprocess.Popen(self.tool.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self):
        status = self.running.wait()  # CULPRIT
        self.record = self.running.stdout.read()
        return status


class Survey:
    def __init__(self, steps):
        self.steps = steps
        self.states = {}

    def run(self):
        for step in self.steps:
            step.start()
            self.states[step.tool.name] = step.finish()  # CULPRIT


class Surveyor(threading.Thread):
    def __init__(self, survey):
        super().__init__(name="surveyor")
        self.survey = survey

    def run(self):
        self.survey.run()


def main():
    steps = [Step(Tool("greet", "print('plot 7')")), Step(Tool("measure", MEASURE))]
    survey = Survey(steps)
    surveyor = Surveyor(survey)
    surveyor.start()
    print("ready", flush=True)
    surveyor.join()
    print(survey.states)


main()
