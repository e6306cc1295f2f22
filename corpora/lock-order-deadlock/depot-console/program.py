"""A bus depot's console: plans the next day, refuels the buses, fetches the weather, each in a thread of its own."""
import socket
import sys
import threading


class Depot:
    def __init__(self):
        self.buses = {number: {"fuel": 40, "line": None} for number in range(8)}
        self.bus_lock = threading.Lock()
        self.pump_lock = threading.Lock()
        self.both_begun = threading.Barrier(2)
        self.litres = 5000

    def plan(self, lines):
        with self.bus_lock:
            self.both_begun.wait()
            for bus, line in zip(self.buses.values(), lines):
                bus["line"] = line
                if bus["fuel"] < 50:
                    self.order_fuel(50 - bus["fuel"])

    def order_fuel(self, litres):
        with self.pump_lock:  # CULPRIT
            self.litres -= litres

    def refuel(self):
        with self.pump_lock:
            self.both_begun.wait()
            self.litres -= self.fill_all()

    def fill_all(self):
        with self.bus_lock:  # CULPRIT
            missing = sum(200 - bus["fuel"] for bus in self.buses.values())
            for bus in self.buses.values():
                bus["fuel"] = 200
            return missing


class Weather:
    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.address = host, int(port)
        self.report = None

    def fetch(self):
        with socket.create_connection(self.address) as link:
            link.sendall(b"REPORT depot-3\n")
            self.report = link.makefile().readline()  # CULPRIT


def main():
    depot, weather = Depot(), Weather(sys.argv[1])
    jobs = [
        threading.Thread(target=depot.plan, args=(["13A", "48A", "57A"],), name="plan", daemon=True),
        threading.Thread(target=depot.refuel, name="refuel", daemon=True),
        threading.Thread(target=weather.fetch, name="weather", daemon=True),
    ]
    for job in jobs:
        job.start()
    print("ready", flush=True)
    for job in jobs:
        job.join()
    print(depot.litres, weather.report)


if __name__ == "__main__":
    main()
