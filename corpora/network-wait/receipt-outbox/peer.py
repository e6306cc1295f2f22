"""The archive: accepts a connection, acknowledges the first receipt, then goes quiet."""
import socket

listener = socket.create_server(("127.0.0.1", 0))
print("%s:%d" % listener.getsockname(), flush=True)
line, _ = listener.accept()
line.recv(65536)
line.sendall(b"ok\n")
while line.recv(65536):
    pass
