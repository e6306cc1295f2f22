"""Asks a time server for the time."""
import socket
import struct


def ask(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"\x1b" + 47 * b"\0", server)
        print("ready", flush=True)
        reply, _ = sock.recvfrom(48)  # CULPRIT
    return struct.unpack("!I", reply[40:44])[0]


print(ask(("127.0.0.1", 12399)))
