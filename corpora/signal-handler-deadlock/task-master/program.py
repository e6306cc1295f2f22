"""Runs short tasks in child processes and counts what happens, for a Prometheus server."""
import multiprocessing
import os
import signal
import tempfile

os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", tempfile.mkdtemp(prefix="metrics-"))

from prometheus_client import Counter  # noqa: E402

STARTED = Counter("tasks_started", "Tasks handed to a child")
FINISHED = Counter("tasks_finished", "Children that have ended", ["status"])
LINES = Counter("spool_lines", "Lines read from the spool")
FORK = multiprocessing.get_context("fork")


class Spool:
    """What is to be done: each task is a bundle of lines."""

    def __init__(self, tasks, lines):
        self.tasks = tasks
        self.lines = lines

    def __iter__(self):
        for number in range(self.tasks):
            yield ["%d:%d" % (number, line) for line in range(self.lines)]


class Master:
    def __init__(self):
        self.running = []
        signal.signal(signal.SIGCHLD, self.reap)

    def reap(self, signum, frame):
        for child in list(self.running):
            if child.exitcode is not None:
                self.running.remove(child)
                FINISHED.labels("failed" if child.exitcode else "ok").inc()  # CULPRIT

    def start(self, bundle):
        child = FORK.Process(target=self.work, args=(bundle,), daemon=True)
        child.start()
        self.running.append(child)
        STARTED.inc()

    @staticmethod
    def work(bundle):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return sum(len(line) for line in bundle)

    def run(self, spool):
        for bundle in spool:
            self.start(bundle)
            for _ in bundle:
                LINES.inc()


def main():
    print("ready", flush=True)
    Master().run(Spool(tasks=400, lines=4000))


if __name__ == "__main__":
    main()
