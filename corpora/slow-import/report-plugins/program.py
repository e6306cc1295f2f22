"""A report writer whose formats and sources are plug-ins, found by the names in its configuration."""
import configparser
import importlib
import os
import sys
import tempfile
import textwrap
import threading

CONFIGURATION = """
[formats]
csv = reports_csv:Plugin
html = reports_html:Plugin

[sources]
ledger = reports_ledger:Plugin
outlook = reports_outlook:Plugin
"""  # CULPRIT

FAMILIES = {"reports_csv": 2, "reports_html": 4, "reports_ledger": 3, "reports_outlook": 90}
MODELS = 60


def unpack(folder):
    """Put the plug-ins that came with the distribution where they can be imported."""
    for package, families in FAMILIES.items():
        base = os.path.join(folder, package)
        os.mkdir(base)
        for family in range(families):
            below = os.path.join(base, "family%d" % family)
            os.mkdir(below)
            count = MODELS if families > 10 else 1
            for model in range(count):
                write(os.path.join(below, "model%d.py" % model), model_text(family, model))
            names = ", ".join("model%d" % model for model in range(count))
            write(os.path.join(below, "__init__.py"), "from . import %s\n" % names)
        lines = ["from . import family%d" % family for family in range(families)]
        lines += ["", "", "class Plugin:", "    name = %r" % package, "    families = %d" % families, ""]
        write(os.path.join(base, "__init__.py"), "\n".join(lines))


def write(path, text):
    with open(path, "w") as out:
        out.write(text)


def model_text(family, model):
    return textwrap.dedent(
        '''\
        from collections import namedtuple

        Reading = namedtuple("Reading", "day week month value")
        Trend = namedtuple("Trend", "slope start season")

        WEIGHTS = [round(1.0 / (1 + (%d + lag) ** 0.5), 4) for lag in range(24)]
        NORM = sum(WEIGHTS[day %% 24] * WEIGHTS[(day * 7 + %d) %% 24] for day in range(40000))


        def forecast(readings):
            return [Trend(r.value / NORM, r.day, r.month) for r in readings]
        '''
    ) % (family, model)


class Loader:
    def __init__(self, progress):
        self.progress = progress

    def load(self, reference):
        module, _, name = reference.partition(":")
        self.progress.note(module)
        return getattr(importlib.import_module(module), name)()  # CULPRIT


class Registry:
    def __init__(self, configuration, loader):
        self.loader = loader
        self.plugins = {}
        self.configuration = configparser.ConfigParser()
        self.configuration.read_string(configuration)

    def populate(self):
        for section in self.configuration.sections():
            for key, reference in self.configuration.items(section):
                self.plugins[section, key] = self.loader.load(reference)


class Progress(threading.Thread):
    """Says every second what is being loaded."""

    def __init__(self):
        super().__init__(name="progress", daemon=True)
        self.current = ""
        self.done = threading.Event()

    def note(self, name):
        self.current = name

    def run(self):
        while not self.done.wait(1.0):
            print("loading", self.current, file=sys.stderr)


class Application:
    def __init__(self, configuration):
        self.progress = Progress()
        self.registry = Registry(configuration, Loader(self.progress))

    def start(self):
        self.progress.start()
        self.registry.populate()
        self.progress.done.set()


def main():
    folder = tempfile.mkdtemp(prefix="plugins")
    unpack(folder)
    sys.path.insert(0, folder)
    application = Application(CONFIGURATION)
    print("ready", flush=True)
    application.start()
    print(sorted(plugin.name for plugin in application.registry.plugins.values()))


if __name__ == "__main__":
    main()
