"""Looks for berths in harbours near a ship; distances come from a Python function in SQL."""
import math
import threading
import time

import peewee

db = peewee.SqliteDatabase(":memory:", thread_safe=False, check_same_thread=False)  # CULPRIT


class Harbour(peewee.Model):
    name = peewee.CharField()
    latitude = peewee.FloatField()
    longitude = peewee.FloatField()

    class Meta:
        database = db


class Charts:
    """Depths along a route; each one is read from the chart plotter."""

    def __init__(self):
        self.asked = threading.Event()

    def depth(self, latitude, longitude):
        self.asked.set()
        time.sleep(0.05)
        return 12.0 + math.sin(latitude) * math.cos(longitude)


class Finder(threading.Thread):
    def __init__(self, charts, draught):
        super().__init__(name="finder", daemon=True)
        self.charts = charts
        self.draught = draught
        self.found = []

    def run(self):
        db.register_function(self.charts.depth, "depth", 2)
        depth = peewee.fn.depth(Harbour.latitude, Harbour.longitude)
        self.found = [harbour.name for harbour in Harbour.select().where(depth > self.draught)]


def nautical_miles(latitude, longitude, other_latitude, other_longitude):
    return 60 * math.hypot(latitude - other_latitude, longitude - other_longitude)


def main():
    db.connect()
    db.create_tables([Harbour])
    Harbour.insert_many([{"name": "H%d" % n, "latitude": n / 7, "longitude": n / 5} for n in range(400)]).execute()
    charts = Charts()
    finder = Finder(charts, draught=11.5)
    finder.start()
    charts.asked.wait()
    print("ready", flush=True)
    db.register_function(nautical_miles, "nautical_miles", 4)  # CULPRIT
    near = peewee.fn.nautical_miles(Harbour.latitude, Harbour.longitude, 3.0, 4.0)
    print([harbour.name for harbour in Harbour.select().order_by(near).limit(5)])
    finder.join()


if __name__ == "__main__":
    main()
