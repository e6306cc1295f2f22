"""A bedside station: answers the ward's desk at once, and works out trends from the samples it keeps."""
import math
import socket
import sys
import threading


class Desk:
    """The desk's side of the line when the station is tried out alone."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        threading.Thread(target=self.run, name="desk", daemon=True).start()

    def run(self):
        line, _ = self.listener.accept()
        while True:
            line.sendall(b"?")
            line.recv(64)


class Station:
    def __init__(self, address):
        self.line = socket.create_connection(address)
        self.line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pulse = 71
        self.answered = 0

    def answer(self):
        while self.line.recv(1):
            self.line.sendall(b"%d\n" % self.pulse)
            self.answered += 1


class Trend:
    def __init__(self, name, samples):
        self.name = name
        self.samples = [60.0 + (n * 7919 % 31) for n in range(samples)]
        self.spectrum = {}

    def power(self, frequency):
        real = imaginary = 0.0
        for index, sample in enumerate(self.samples):  # CULPRIT
            angle = frequency * index
            real += sample * math.cos(angle)
            imaginary += sample * math.sin(angle)
        return real * real + imaginary * imaginary

    def follow(self):
        turn = 0
        while True:  # CULPRIT
            self.spectrum[turn % 100] = self.power(turn % 100 / 100.0)
            turn += 1


def main():
    if len(sys.argv) > 1:
        host, _, port = sys.argv[1].rpartition(":")
        address = host, int(port)
    else:
        address = Desk().address
    station = Station(address)
    for name in ("pulse", "pressure"):
        threading.Thread(target=Trend(name, 3000).follow, name="trend-" + name, daemon=True).start()
    print("ready", flush=True)
    station.answer()


if __name__ == "__main__":
    main()
