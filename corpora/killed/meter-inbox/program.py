"""Collects what electricity meters report in a shared page of memory, in the layout that the meter firmware writes."""
import ctypes
import mmap
import threading
import time


class Reading(ctypes.Structure):
    _fields_ = [("meter", ctypes.c_uint32), ("watts", ctypes.c_uint32), ("count", ctypes.c_uint64)]


class Inbox:
    def __init__(self, meters):
        self.memory = mmap.mmap(-1, mmap.PAGESIZE)
        self.readings = (Reading * meters).from_buffer(self.memory)

    def put(self, meter, watts):
        reading = self.readings[meter]
        reading.watts = watts
        reading.count += 1

    def total(self):
        copy = ctypes.string_at(ctypes.addressof(self.readings), ctypes.sizeof(self.readings))
        return sum((Reading * len(self.readings)).from_buffer_copy(copy)[n].watts for n in range(len(self.readings)))


def report(inbox, meters):
    number = 0
    while True:
        number += 1
        inbox.put(number % meters, number * 13 % 3000)
        time.sleep(0.01)


def main():
    meters = 40
    inbox = Inbox(meters)
    threading.Thread(target=report, args=(inbox, meters), name="meters", daemon=True).start()
    peak = 0
    print("ready", flush=True)
    while True:
        peak = max(peak, inbox.total())
        time.sleep(5)  # CULPRIT


if __name__ == "__main__":
    main()
