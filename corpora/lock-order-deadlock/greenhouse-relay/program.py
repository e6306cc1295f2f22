"""Relays a greenhouse's readings to an MQTT broker, and answers its requests."""
import socket
import sys
import threading
import time

import paho.mqtt.client as mqtt


class LocalBroker(threading.Thread):
    """Just enough of a broker for a greenhouse without a network: takes everything, asks once."""

    def __init__(self):
        super().__init__(name="broker", daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = self.server.getsockname()

    def run(self):
        connection, _ = self.server.accept()
        connection.recv(4096)
        connection.sendall(b"\x20\x02\x00\x00")
        packet = connection.recv(4096)
        connection.sendall(b"\x90\x03" + packet[2:4] + b"\x00")
        topic, question = b"house/ask", b"vents"
        body = len(topic).to_bytes(2, "big") + topic + question
        connection.sendall(b"\x30" + bytes([len(body)]) + body)
        while connection.recv(4096):
            pass


class Greenhouse:
    """The actuators are on a slow serial bus."""

    def __init__(self):
        self.asked = threading.Event()

    def vents(self):
        self.asked.set()
        time.sleep(0.3)
        return "closed"


class Relay:
    def __init__(self, greenhouse, address):
        self.greenhouse = greenhouse
        self.client = mqtt.Client("greenhouse-7")
        self.client.on_connect = self.connected
        self.client.on_message = self.asked
        self.client.connect(*address)

    def connected(self, client, userdata, flags, rc):
        client.subscribe("house/ask")

    def asked(self, client, userdata, message):
        client.publish("house/vents", self.greenhouse.vents(), qos=1)  # CULPRIT

    def sample(self):
        self.greenhouse.asked.wait()
        print("ready", flush=True)
        for minute in range(1000):
            self.client.publish("house/temperature", "%.1f" % (18 + minute % 7), qos=1)  # CULPRIT
            time.sleep(0.5)


def main():
    if len(sys.argv) > 1:
        host, _, port = sys.argv[1].rpartition(":")
        address = host, int(port)
    else:
        broker = LocalBroker()
        broker.start()
        address = broker.address
    relay = Relay(Greenhouse(), address)
    relay.client.loop_start()
    relay.sample()


if __name__ == "__main__":
    main()
