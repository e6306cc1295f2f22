"""Installs packages; one installation at a time. Packages may have hooks, which are commands."""
import fcntl
import os
import subprocess
import sys
import tempfile


class Database:
    def __init__(self, folder):
        self.folder = folder
        self.file = open(os.path.join(folder, "database.lock"), "w")

    def __enter__(self):
        fcntl.flock(self.file, fcntl.LOCK_EX)  # CULPRIT
        return self

    def __exit__(self, *exc):
        fcntl.flock(self.file, fcntl.LOCK_UN)

    def add(self, name):
        with open(os.path.join(self.folder, name), "w") as record:
            record.write("installed\n")


def install(folder, name, hook=()):
    with Database(folder) as database:  # CULPRIT
        database.add(name)
        if hook:
            subprocess.run([sys.executable, __file__, *hook], check=True)  # CULPRIT


def main(arguments):
    if arguments[:1] == ["install"]:
        print("ready", flush=True)
        install(*arguments[1:])
        return
    with tempfile.TemporaryDirectory() as folder:
        install(folder, "editor", hook=("install", folder, "editor-fonts"))


if __name__ == "__main__":
    main(sys.argv[1:])
