"""The archive server: lists one folder within the other, 180 deep, and then has nothing more to say."""
import socket

listener = socket.create_server(("127.0.0.1", 0))
print("%s:%d" % listener.getsockname(), flush=True)
while True:
    sock, _ = listener.accept()
    with sock, sock.makefile("rb") as lines:
        for number, _ in enumerate(lines, 1):
            if number <= 180:
                sock.sendall(b"y%d\n" % number)
