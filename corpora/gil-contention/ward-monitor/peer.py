"""The desk: asks whoever comes, again as soon as the answer is there."""
import socket

listener = socket.create_server(("127.0.0.1", 0))
print("%s:%d" % listener.getsockname(), flush=True)
while True:
    line, _ = listener.accept()
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while True:
            line.sendall(b"?")
            if not line.recv(64):
                break
    except OSError:
        pass
    line.close()
