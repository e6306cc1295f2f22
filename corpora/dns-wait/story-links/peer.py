"""The branch's name server as it is on a bad day: questions arrive, and no answer is given."""
import socket

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
print("%s:%d" % server.getsockname(), flush=True)
while True:
    server.recvfrom(4096)
