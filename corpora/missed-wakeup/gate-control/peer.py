"""A small MQTT broker: takes every subscription, sends three requests, acknowledges what is published."""
import socket
import threading


def message(topic, payload):
    body = len(topic).to_bytes(2, "big") + topic + payload
    return bytes([0x30, len(body)]) + body


def serve(connection):
    stream = connection.makefile("rb")
    while True:
        head = stream.read(1)
        if not head:
            return
        size = shift = 0
        while True:
            byte = stream.read(1)[0]
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        body = stream.read(size)
        kind = head[0] >> 4
        if kind == 1:
            connection.sendall(b"\x20\x02\x00\x00")
        elif kind == 8:
            connection.sendall(b"\x90\x03" + body[:2] + b"\x00")
            connection.sendall(message(b"gate/4/request", b"ticket") + message(b"gate/2/request", b"ticket"))
            connection.sendall(message(b"gate/0/request", b"close"))
        elif kind == 3 and head[0] & 6:
            start = 2 + int.from_bytes(body[:2], "big")
            connection.sendall(b"\x40\x02" + body[start : start + 2])
        elif kind == 12:
            connection.sendall(b"\xd0\x00")


listener = socket.create_server(("127.0.0.1", 0))
print("%s:%d" % listener.getsockname(), flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
