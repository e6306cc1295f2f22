"""Logs visits in a database: one thread writes in batches, two record, the main thread reads the sums."""
import os
import queue
import sqlite3
import tempfile
import threading
import time


def writer(path, visits):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE IF NOT EXISTS visit (page TEXT, seconds REAL)")
    connection.commit()
    while True:
        batch = [visits.get()]
        while len(batch) < 50 and not visits.empty():
            batch.append(visits.get())
        with connection:
            connection.executemany("INSERT INTO visit VALUES (?, ?)", batch)
            connection.execute("DELETE FROM visit WHERE rowid < (SELECT max(rowid) - 20000 FROM visit)")


def record(visits, pause):
    number = 0
    while True:
        visits.put(("/page/%d" % (number % 30), number % 17 / 10.0))
        number += 1
        time.sleep(pause)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "visits.db")
        visits = queue.Queue(200)
        threading.Thread(target=writer, args=(path, visits), name="writer", daemon=True).start()
        for pause in (0.002, 0.005):
            threading.Thread(target=record, args=(visits, pause), daemon=True).start()
        while not os.path.exists(path):
            time.sleep(0.01)
        reader = sqlite3.connect(path, timeout=5.0)
        print("ready", flush=True)
        while True:
            time.sleep(0.25)
            try:
                reader.execute("SELECT page, sum(seconds) FROM visit GROUP BY page").fetchall()
            except sqlite3.OperationalError:
                continue


if __name__ == "__main__":
    main()
