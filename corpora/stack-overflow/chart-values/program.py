"""Checks the values files of a deployment before it is rolled out; parses them with libyaml for speed."""
import io
import queue
import threading

import yaml


class ValuesFile:
    def __init__(self, name, text):
        self.name = name
        self.text = text

    def load(self):
        return yaml.load(io.StringIO(self.text), Loader=yaml.CSafeLoader)  # CULPRIT


def rendered(levels):
    """What the template engine makes of a loop that opens one list more each time."""
    return "rules: " + "[" * levels + "allow" + "]" * levels


class Checker(threading.Thread):
    def __init__(self, files, verdicts):
        super().__init__(name="checker")
        self.files = files
        self.verdicts = verdicts

    def run(self):
        for file in self.files:
            self.verdicts.put((file.name, self.check(file)))

    def check(self, file):
        try:
            return "ok" if isinstance(file.load(), dict) else "not a mapping"
        except (yaml.YAMLError, RecursionError) as exc:
            return "unreadable: %s" % exc


def main():
    files = [
        ValuesFile("base.yaml", "replicas: 2\nimage: {name: shop, tag: '1.4'}\n"),
        ValuesFile("rendered.yaml", rendered(60000)),
        ValuesFile("night.yaml", "replicas: 1\n"),
    ]
    verdicts = queue.Queue()
    checker = Checker(files, verdicts)
    checker.start()
    print("ready", flush=True)
    for _ in files:
        print("%s: %s" % verdicts.get())
    checker.join()


if __name__ == "__main__":
    main()
