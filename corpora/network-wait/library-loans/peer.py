"""A MySQL server: lets everybody in, acknowledges settings, and says nothing about tables."""
import socket
import threading


def packet(number, body):
    return len(body).to_bytes(3, "little") + bytes([number]) + body


GREETING = (
    b"\x0a8.0.30\0"
    + (7).to_bytes(4, "little")
    + b"abcdefgh\0"
    + (0xA208).to_bytes(2, "little")
    + b"\x2d\x02\0"
    + (0x0008).to_bytes(2, "little")
    + b"\x15"
    + bytes(10)
    + b"ijklmnopqrst\0mysql_native_password\0"
)
OK = b"\0\0\0\x02\0\0\0"


def serve(connection):
    stream = connection.makefile("rb")
    connection.sendall(packet(0, GREETING))
    while True:
        head = stream.read(4)
        if len(head) < 4:
            return
        body = stream.read(int.from_bytes(head[:3], "little"))
        if not (head[3] == 0 and body[:7] == b"\x03SELECT"):
            connection.sendall(packet(head[3] + 1, OK))


listener = socket.create_server(("127.0.0.1", 0))
print("%s:%d" % listener.getsockname(), flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
