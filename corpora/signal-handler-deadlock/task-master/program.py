"""Runs short tasks in child processes and counts what happens, for a Prometheus server."""
import os
import signal
import tempfile

os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", tempfile.mkdtemp(prefix="metrics-"))

from prometheus_client import Counter  # noqa: E402

STARTED = Counter("tasks_started", "Tasks handed to a child")
FINISHED = Counter("tasks_finished", "Children that have ended", ["status"])
LINES = Counter("spool_lines", "Lines read from the spool")


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
        self.running = set()
        signal.signal(signal.SIGCHLD, self.reap)

    def reap(self, signum, frame):
        for pid in list(self.running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self.running.discard(pid)
                FINISHED.labels("ok" if status == 0 else "failed").inc()  # CULPRIT

    def start(self, bundle):
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(0 if self.work(bundle) else 1)
        self.running.add(pid)
        STARTED.inc()

    @staticmethod
    def work(bundle):
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
