"""Runs the checks of a seed depot: they share one prepared database, which the first run that needs it prepares."""
import os
import queue
import subprocess
import sys
import tempfile
import threading

import pytest
from filelock import FileLock


class Beat(threading.Thread):
    """Tells the build server that the checks go on."""

    def __init__(self):
        super().__init__(name="beat", daemon=True)
        self.count = 0
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.5):
            self.count += 1


class Recorder(threading.Thread):
    def __init__(self):
        super().__init__(name="recorder", daemon=True)
        self.events = queue.Queue()
        self.seen = []

    def run(self):
        while True:
            self.seen.append(self.events.get())


class Preparation:
    def __init__(self, folder):
        self.folder = folder
        self.lock = os.path.join(folder, "depot.lock")
        self.database = os.path.join(folder, "depot.db")

    def migrate(self):
        subprocess.run([sys.executable, "migrate.py", self.database, self.lock], check=True)  # CULPRIT

    def database_once(self):
        with FileLock(self.lock):  # CULPRIT
            if not os.path.exists(self.database):
                print("ready", flush=True)
                self.migrate()  # CULPRIT
        return self.database


class Depot:
    """The plugin with what the checks need."""

    def __init__(self, folder):
        self.preparation = Preparation(folder)
        self.keeper = Recorder()

    @pytest.fixture(scope="session")
    def recorder(self):
        self.keeper.start()
        return self.keeper.events

    @pytest.fixture(scope="session")
    def database(self, recorder):
        recorder.put("prepare")
        return self.preparation.database_once()

    def pytest_runtest_logreport(self, report):
        self.keeper.events.put((report.nodeid, report.when, report.outcome))


def main():
    Beat().start()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider", "checks.py"], plugins=[Depot(folder)]))


if __name__ == "__main__":
    main()
