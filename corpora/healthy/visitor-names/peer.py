"""A name server far away: it answers after a tenth of a second that there is no such name."""
import socket
import time

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
print("%s:%d" % server.getsockname(), flush=True)
while True:
    question, asker = server.recvfrom(4096)
    time.sleep(0.05)
    server.sendto(question[:2] + b"\x81\x83" + question[4:], asker)
