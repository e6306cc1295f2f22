"""Sells tickets from a store on disk; the audit writes down who looked at what."""
import os
import sqlite3
import sys
import tempfile
import threading


class Store:
    def __init__(self, path):
        self.path = path

    def connect(self):
        return sqlite3.connect(self.path, timeout=1800.0, isolation_level=None)


class Audit:
    def __init__(self, store):
        self.connection = store.connect()

    def look(self, who):
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("INSERT INTO looks VALUES (?)", (who,))
        try:
            self.check(who)
        except PermissionError as error:
            print("refused:", error, file=sys.stderr)
            return False
        self.connection.execute("COMMIT")
        return True

    def check(self, who):
        if who.startswith("guest"):
            raise PermissionError(who)


class Desk:
    def __init__(self, store, audit):
        self.connection = store.connect()
        self.audit = audit

    def sell(self, who, seat):
        self.audit.look(who)
        self.write("INSERT INTO tickets VALUES (?, ?)", who, seat)

    def write(self, statement, *values):
        self.connection.execute(statement, values)  # CULPRIT


def main():
    store = Store(os.path.join(tempfile.mkdtemp(), "tickets.db"))
    setup = store.connect()
    setup.execute("CREATE TABLE looks (who TEXT)")
    setup.execute("CREATE TABLE tickets (who TEXT, seat TEXT)")
    desk = Desk(store, Audit(store))
    desk.sell("member 1", "A1")
    seller = threading.Thread(target=desk_work, args=(store,), name="seller")
    seller.start()
    print("ready", flush=True)
    seller.join()


def desk_work(store):
    desk = Desk(store, Audit(store))
    for who, seat in (("member 2", "A2"), ("guest 7", "B1"), ("member 3", "A3")):
        desk.sell(who, seat)


main()
