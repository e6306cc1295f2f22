"""Keeps a cookbook under version control: every edited recipe becomes a commit."""
import os
import tempfile
import threading

import git

CHECK = """#!/bin/sh
# no commits while the printer has the files
while [ -e printing ]; do sleep 1; done
"""


class Cookbook:
    def __init__(self, folder):
        self.folder = folder
        self.repository = git.Repo.init(folder)
        with self.repository.config_writer() as settings:
            settings.set_value("user", "name", "kitchen")
            settings.set_value("user", "email", "kitchen@localhost")
        hook = os.path.join(self.repository.git_dir, "hooks", "pre-commit")
        os.makedirs(os.path.dirname(hook), exist_ok=True)
        with open(hook, "w") as file:
            file.write(CHECK)
        os.chmod(hook, 0o755)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)
        return name

    def edit(self, recipe, text):
        self.repository.git.add(self.write(recipe + ".txt", text))
        print("ready", flush=True)
        self.repository.git.commit("-m", "edit " + recipe)  # CULPRIT


class Kitchen(threading.Thread):
    def __init__(self, cookbook):
        super().__init__(name="kitchen", daemon=True)
        self.cookbook = cookbook

    def run(self):
        self.cookbook.write("printing", "since breakfast\n")
        self.cookbook.edit("dumplings", "flour, eggs, plums\n")  # CULPRIT


def main():
    with tempfile.TemporaryDirectory() as folder:
        kitchen = Kitchen(Cookbook(folder))
        kitchen.start()
        kitchen.join()


if __name__ == "__main__":
    main()
