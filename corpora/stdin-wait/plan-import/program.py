"""Imports building plans: the work is done by a tool of its own, which this service starts for each plan."""
import subprocess
import sys


class PlanTool:
    def __init__(self, script):
        self.script = script

    def start(self, plan, store):
        command = [sys.executable, self.script, "add", "--store", store, plan]
        return subprocess.Popen(command, stdin=subprocess.PIPE)  # CULPRIT


class ImportJob:
    def __init__(self, tool, plans):
        self.tool = tool
        self.plans = plans
        self.codes = {}

    def run(self):
        for plan in self.plans:
            process = self.tool.start(plan, "site-7")
            self.codes[plan] = process.wait()  # CULPRIT
        return self.codes


def main():
    job = ImportJob(PlanTool("plans.py"), ["roof", "cellar", "roof"])
    print("ready", flush=True)
    print(job.run())


if __name__ == "__main__":
    main()
