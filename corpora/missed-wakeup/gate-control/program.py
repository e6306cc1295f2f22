"""Opens the gates of a car park: requests come by MQTT, and each is answered by a command that must have been sent."""
import sys
import threading

import paho.mqtt.client as mqtt


class Gates:
    def __init__(self, client):
        self.client = client
        self.opened = []

    def command(self, gate, action):
        info = self.client.publish("gate/%s/command" % gate, action, qos=1)
        info.wait_for_publish()  # CULPRIT
        return info.mid

    def open(self, gate):
        self.opened.append((gate, self.command(gate, "open")))


class Controller:
    def __init__(self, host, port):
        self.client = mqtt.Client(client_id="car-park")
        self.client.on_connect = self.on_connect
        self.client.on_message = self.on_message
        self.gates = Gates(self.client)
        self.done = threading.Event()
        self.client.connect(host, port, keepalive=600)

    def on_connect(self, client, userdata, flags, code):
        client.subscribe("gate/+/request")

    def on_message(self, client, userdata, message):
        gate = message.topic.split("/")[1]
        if message.payload == b"ticket":
            print("ready", flush=True)
            self.gates.open(gate)  # CULPRIT
        else:
            self.done.set()

    def run(self):
        self.client.loop_start()
        self.done.wait()
        self.client.loop_stop()


def main():
    host, _, port = sys.argv[1].rpartition(":")
    controller = Controller(host, int(port))
    controller.run()
    print(controller.gates.opened)


if __name__ == "__main__":
    main()
