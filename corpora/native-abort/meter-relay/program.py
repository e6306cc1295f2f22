"""Collects readings of water meters over ZeroMQ and goes into the background like a daemon."""
import os

import zmq


class Background:
    """What a daemon does before it works: another umask, no descriptors of its parent."""

    def __init__(self, most):
        self.most = most

    def enter(self):
        os.umask(0o027)
        os.closerange(3, self.most)  # CULPRIT


class Relay:
    def __init__(self, context, addresses):
        self.sockets = [context.socket(zmq.PULL) for _address in addresses]
        for socket, address in zip(self.sockets, addresses):
            socket.bind(address)

    def collect(self, rounds):
        found = []
        for _round in range(rounds):
            for socket in self.sockets:
                if socket.poll(20):
                    found.append(socket.recv())
        return found

    def close(self):
        for socket in self.sockets:
            socket.close()  # CULPRIT


class Service:
    def __init__(self, addresses):
        self.context = zmq.Context()
        self.relay = Relay(self.context, addresses)
        self.background = Background(most=256)

    def run(self):
        self.background.enter()
        try:
            return self.relay.collect(rounds=2)  # CULPRIT
        finally:
            self.relay.close()
            self.context.term()


if __name__ == "__main__":
    print("ready", flush=True)
    Service(["inproc://meters", "inproc://valves"]).run()
