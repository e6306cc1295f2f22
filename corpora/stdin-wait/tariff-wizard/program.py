"""Sets up the tariffs of a swimming pool; what the settings lack is asked."""
import queue
import threading

import click


class Autosave(threading.Thread):
    """Keeps what was entered so far."""

    def __init__(self):
        super().__init__(name="autosave", daemon=True)
        self.changes = queue.Queue()
        self.saved = {}

    def run(self):
        while True:
            key, value = self.changes.get()
            self.saved[key] = value


class Wizard:
    def __init__(self, autosave, given):
        self.autosave = autosave
        self.given = given

    def value(self, key, question, kind):
        if key not in self.given:
            self.given[key] = click.prompt(question, type=kind)  # CULPRIT
        self.autosave.changes.put((key, self.given[key]))
        return self.given[key]

    def tariffs(self):
        adult = self.value("adult", "Price for adults", float)
        if self.value("reduced", "Is there a reduced price", bool):
            child = self.value("child", "Price for children", float)  # CULPRIT
        else:
            child = adult
        return {"adult": adult, "child": child}


@click.command()
@click.option("--adult", type=float)
@click.option("--reduced/--no-reduced", default=None)
def setup(**options):
    """Sets up the tariffs."""
    autosave = Autosave()
    autosave.start()
    wizard = Wizard(autosave, {key: value for key, value in options.items() if value is not None})
    print("ready", flush=True)
    click.echo(wizard.tariffs())


if __name__ == "__main__":
    setup()
