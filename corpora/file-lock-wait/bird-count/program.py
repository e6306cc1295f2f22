"""Counts birds: observers' sheets go into an SQLite database that an evaluation reads and tidies up."""
import multiprocessing
import os
import tempfile

import peewee

database = peewee.SqliteDatabase(None)


class Sighting(peewee.Model):
    species = peewee.CharField()
    number = peewee.IntegerField()

    class Meta:
        database = database


class Store:
    def __init__(self, path):
        database.init(path, timeout=1800)  # CULPRIT

    def add(self, species, number):
        return Sighting.create(species=species, number=number)  # CULPRIT


class Evaluation:
    """A process of its own: takes the numbers out, and lets a person correct them before it writes them back."""

    def __init__(self, path, inbox):
        self.path = path
        self.inbox = inbox

    def run(self, outbox):
        Store(self.path)
        with database.atomic("EXCLUSIVE"):  # CULPRIT
            outbox.send({row.species: row.number for row in Sighting.select()})
            corrections = self.inbox.recv()
            for species, number in corrections.items():
                Sighting.update(number=number).where(Sighting.species == species).execute()


def main():
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "birds.db")
        store = Store(path)
        database.create_tables([Sighting])
        store.add("swift", 31)
        database.close()
        inbox, corrections = context.Pipe(duplex=False)
        numbers, outbox = context.Pipe(duplex=False)
        evaluation = context.Process(target=Evaluation(path, inbox).run, args=(outbox,), daemon=True)
        evaluation.start()
        counted = numbers.recv()
        print("ready", flush=True)
        store.add("swallow", 12)
        corrections.send({"swift": counted["swift"] + 1})
        evaluation.join()


if __name__ == "__main__":
    main()
