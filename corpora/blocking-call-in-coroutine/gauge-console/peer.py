"""An instrument on the line: answers the greeting, then reads and keeps its readings to itself."""
import socket

listener = socket.create_server(("127.0.0.1", 0))
print("%s:%d" % listener.getsockname(), flush=True)
lines = []
while True:
    line, _ = listener.accept()
    lines.append(line)
    line.sendall(b"GAUGE 2\n")
