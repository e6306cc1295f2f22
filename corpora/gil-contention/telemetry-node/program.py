"""A node that must answer a status request quickly while it refits its models."""
import socket
import threading


class Model:
    def __init__(self, size):
        self.weights = [0.5] * size

    def refit(self, rounds):
        for turn in range(rounds):  # CULPRIT
            error = 0.0
            for index, weight in enumerate(self.weights):
                delta = (index * turn % 13) / 13.0 - weight
                self.weights[index] = weight + delta * 0.01
                error += delta * delta
        return error


class StatusPort:
    """One byte in, one byte out: what the balancer asks many times a second."""

    def __init__(self):
        self.here, self.there = socket.socketpair()

    def serve(self):
        while self.there.recv(1):
            self.there.send(b"k")

    def ask(self):
        self.here.send(b"?")
        return self.here.recv(1)


class Node:
    def __init__(self, models):
        self.models = [Model(400) for _ in range(models)]
        self.port = StatusPort()

    def start(self):
        threading.Thread(target=self.port.serve, name="status", daemon=True).start()
        for number, model in enumerate(self.models):
            threading.Thread(target=model.refit, args=(10_000_000,), name="refit-%d" % number, daemon=True).start()


def main():
    node = Node(models=3)
    node.start()
    print("ready", flush=True)
    for _ in range(200_000):
        node.port.ask()


if __name__ == "__main__":
    main()
