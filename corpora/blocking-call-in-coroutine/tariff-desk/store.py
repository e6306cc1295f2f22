"""Tables of the tariff desk."""
import sqlite3
import threading
import time


class Store:
    def __init__(self, path):
        self.path = path
        self.connection = sqlite3.connect(path, timeout=600, isolation_level=None)

    def create(self):
        self.connection.execute("CREATE TABLE tariff (zone TEXT PRIMARY KEY, cents INTEGER)")
        self.connection.execute("CREATE TABLE archive (zone TEXT, cents INTEGER)")
        rows = [("Z%04d" % n, 100 + n) for n in range(4000)]
        self.connection.execute("BEGIN")
        self.connection.executemany("INSERT INTO tariff VALUES (?, ?)", rows)
        self.connection.execute("COMMIT")

    def price(self, zone):
        return self.connection.execute("SELECT cents FROM tariff WHERE zone = ?", (zone,)).fetchone()[0]

    def change(self, zone, cents):
        self.connection.execute("UPDATE tariff SET cents = ? WHERE zone = ?", (cents, zone))  # CULPRIT


class Archiver(threading.Thread):
    """Copies all tariffs once a night, as one transaction, a few rows at a time to spare the disk."""

    def __init__(self, path):
        super().__init__(name="archiver", daemon=True)
        self.path = path
        self.begun = threading.Event()

    def run(self):
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        self.begun.set()
        rows = connection.execute("SELECT zone, cents FROM tariff").fetchall()
        for row in rows:
            connection.execute("INSERT INTO archive VALUES (?, ?)", row)
            time.sleep(0.1)  # CULPRIT
        connection.execute("COMMIT")
