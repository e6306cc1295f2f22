"""A Redis server that introduces itself and then has no answer to any GET."""
import socket
import threading


def command(stream):
    head = stream.readline()
    if not head:
        return None
    parts = []
    for _ in range(int(head[1:])):
        size = int(stream.readline()[1:])
        parts.append(stream.read(size + 2)[:-2])
    return parts


def serve(connection):
    stream = connection.makefile("rb")
    while True:
        parts = command(stream)
        if parts is None:
            return
        if parts[0].upper() != b"GET":
            connection.sendall(b"+OK\r\n")


listener = socket.create_server(("127.0.0.1", 0))
print("%s:%d" % listener.getsockname(), flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
