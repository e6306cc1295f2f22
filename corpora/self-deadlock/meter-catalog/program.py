"""Exports the readings of the electricity meters of a building."""
import threading

from prometheus_client import REGISTRY, Gauge, generate_latest
from prometheus_client.core import GaugeMetricFamily


class Meter:
    def __init__(self, flat):
        self.flat = flat
        self.kilowatt_hours = 0.0

    def advance(self, amount):
        self.kilowatt_hours += amount


class Building:
    def __init__(self, flats):
        self.meters = {flat: Meter(flat) for flat in flats}

    def total(self):
        return sum(meter.kilowatt_hours for meter in self.meters.values())


class MeterCollector:
    """Reads the meters when somebody asks for the metrics."""

    def __init__(self, building):
        self.building = building
        self._total = None

    @property
    def total(self):
        if self._total is None:
            self._total = Gauge("building_kilowatt_hours", "Sum over all flats")  # CULPRIT
        return self._total

    def collect(self):
        self.total.set(self.building.total())
        family = GaugeMetricFamily("flat_kilowatt_hours", "Reading of a flat", labels=["flat"])
        for flat, meter in self.building.meters.items():
            family.add_metric([flat], meter.kilowatt_hours)
        yield family


class Reader(threading.Thread):
    def __init__(self, building, every):
        super().__init__(name="meter-reader", daemon=True)
        self.building = building
        self.every = every
        self.closing = threading.Event()

    def run(self):
        while not self.closing.wait(self.every):
            for meter in self.building.meters.values():
                meter.advance(0.01)


def main():
    building = Building("flat-%d" % number for number in range(12))
    Reader(building, every=0.5).start()
    print("ready", flush=True)
    REGISTRY.register(MeterCollector(building))  # CULPRIT
    print(generate_latest(REGISTRY).decode())


if __name__ == "__main__":
    main()
