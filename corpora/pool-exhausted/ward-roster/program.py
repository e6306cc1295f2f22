"""Swaps shifts in a hospital's roster; each swap is a transaction, and each is written to a journal."""
import os
import sqlite3
import tempfile
import threading

from dbutils.pooled_db import PooledDB


class Store:
    def __init__(self, path, connections):
        self.pool = PooledDB(sqlite3, maxconnections=connections, blocking=True, database=path, check_same_thread=False)

    def connection(self):
        return self.pool.connection()


class Journal:
    def __init__(self, store):
        self.store = store

    def note(self, text):
        connection = self.store.connection()  # CULPRIT
        try:
            connection.cursor().execute("INSERT INTO journal VALUES (?)", (text,))
            connection.commit()
        finally:
            connection.close()


class Roster:
    def __init__(self, store, journal, opened):
        self.store = store
        self.journal = journal
        self.opened = opened

    def swap(self, first, second):
        connection = self.store.connection()
        try:
            cursor = connection.cursor()
            cursor.execute("SELECT nurse, shift FROM roster")
            shifts = dict(cursor.fetchall())
            self.opened.wait()
            self.journal.note("%s and %s: %s" % (first, second, shifts[first]))  # CULPRIT
            cursor.execute("UPDATE roster SET shift = ? WHERE nurse = ?", (shifts[second], first))
            connection.commit()
        finally:
            connection.close()


def main():
    with tempfile.TemporaryDirectory() as folder:
        store = Store(os.path.join(folder, "ward.db"), connections=3)
        connection = store.connection()
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE roster (nurse, shift)")
        cursor.execute("CREATE TABLE journal (line)")
        nurses = ["ada", "bo", "cy", "di", "ed", "flo"]
        cursor.executemany("INSERT INTO roster VALUES (?, 'early')", [(name,) for name in nurses])
        connection.commit()
        connection.close()
        roster = Roster(store, Journal(store), threading.Barrier(3))
        pairs = zip(nurses[::2], nurses[1::2])
        desks = [threading.Thread(target=roster.swap, args=pair, name="desk-" + pair[0], daemon=True) for pair in pairs]
        for desk in desks:
            desk.start()
        print("ready", flush=True)
        for desk in desks:
            desk.join()


if __name__ == "__main__":
    main()
