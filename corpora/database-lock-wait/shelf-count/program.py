import os
import sqlite3
import tempfile
import threading

path = os.path.join(tempfile.mkdtemp(), "shelves.db")
counted = threading.Event()


def count():
    books = sqlite3.connect(path)
    books.execute("CREATE TABLE shelf (name TEXT, books INTEGER)")
    books.execute("INSERT INTO shelf VALUES ('poetry', 40)")
    counted.set()
    threading.Event().wait()  # keeps the connection, and what it began on it


threading.Thread(target=count, daemon=True).start()
counted.wait()
desk = sqlite3.connect(path, timeout=3600)
print("ready", flush=True)
desk.execute("CREATE TABLE loan (reader TEXT, book TEXT)")  # CULPRIT
print("lent")
