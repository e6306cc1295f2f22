"""Brings a depot's database up to date; one migration at a time, whoever asks for it."""
import sqlite3
import sys

from filelock import FileLock


class Migration:
    def __init__(self, path):
        self.path = path

    def apply(self):
        with sqlite3.connect(self.path) as connection:
            connection.execute("CREATE TABLE seeds (name, grams)")
            connection.executemany("INSERT INTO seeds VALUES (?, ?)", [("clover", 500), ("vetch", 250)])


def main(database, lock):
    with FileLock(lock):  # CULPRIT
        Migration(database).apply()


if __name__ == "__main__":
    main(*sys.argv[1:])
