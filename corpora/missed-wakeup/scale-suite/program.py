"""Tests of a weighbridge: the protocol by itself, and over a small server that the tests start and stop."""
import queue
import socketserver
import sys
import threading
import unittest


class Protocol:
    UNITS = {"kg": 1, "t": 1000}

    def parse(self, line):
        number, unit = line.split()
        return float(number) * self.UNITS[unit]


class Weigh(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"%d\n" % self.server.bridge.weigh(line.decode()))


class Bridge:
    def __init__(self, calibration):
        self.calibration = calibration
        self.protocol = Protocol()
        self.factor = None

    def calibrate(self):
        self.factor = self.protocol.parse(self.calibration["reference"]) / self.calibration["reading"]

    def weigh(self, line):
        return self.protocol.parse(line) * self.factor


class Service:
    """The server in a thread, with two printers of tickets behind it."""

    def __init__(self, bridge):
        self.bridge = bridge
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Weigh)
        self.server.bridge = bridge
        self.tickets = queue.Queue()
        self.thread = threading.Thread(target=self.run, name="bridge", daemon=True)

    def run(self):
        self.bridge.calibrate()
        self.server.serve_forever()  # CULPRIT

    def print_tickets(self):
        while True:
            self.tickets.get()

    def start(self):
        for number in range(2):
            threading.Thread(target=self.print_tickets, name="printer-%d" % number, daemon=True).start()
        self.thread.start()

    def stop(self):
        self.server.shutdown()  # CULPRIT
        self.server.server_close()


class ProtocolTest(unittest.TestCase):
    def test_tonnes(self):
        self.assertEqual(Protocol().parse("1.5 t"), 1500)


class ServiceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = Service(Bridge({"reference": "500 lb", "reading": 498.2}))  # CULPRIT
        cls.service.start()

    @classmethod
    def tearDownClass(cls):
        cls.service.thread.join(0.5)
        print("ready", flush=True)
        cls.service.stop()  # CULPRIT

    def test_address(self):
        self.assertEqual(self.service.server.server_address[0], "127.0.0.1")


if __name__ == "__main__":
    threading.excepthook = lambda details: print("thread:", repr(details.exc_value), file=sys.stderr)
    unittest.main(argv=["weighbridge"])
