"""Counts pairs of stops in a timetable with one long query, in a thread beside the one that waits for it."""
import sqlite3
import threading

QUERY = """
WITH RECURSIVE stops(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM stops WHERE n < 20000)
SELECT count(*) FROM stops a, stops b WHERE (a.n * 31 + b.n * 17) % 1009 = 7
"""


def tally(found):
    timetable = sqlite3.connect(":memory:", timeout=3600)
    found.append(timetable.execute(QUERY).fetchone()[0])


found = []
worker = threading.Thread(target=tally, args=(found,), name="tally")
worker.start()
print("ready", flush=True)
worker.join()
print(found)
