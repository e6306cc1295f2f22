"""A display: shakes hands over a websocket, takes what it is sent, and confirms nothing."""
import base64
import hashlib
import socket
import threading

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def serve(connection):
    text = b""
    while b"\r\n\r\n" not in text:
        text += connection.recv(4096)
    lines = dict(line.split(b": ", 1) for line in text.split(b"\r\n")[1:] if b": " in line)
    key = {name.lower(): value for name, value in lines.items()}[b"sec-websocket-key"]
    accept = base64.b64encode(hashlib.sha1(key + MAGIC).digest())
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    connection.sendall(answer + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    while connection.recv(4096):
        pass


listener = socket.create_server(("127.0.0.1", 0))
print("%s:%d" % listener.getsockname(), flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
