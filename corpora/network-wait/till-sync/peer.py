"""The head office at closing time: its queue of callers is full, and nobody takes a call."""
import signal
import socket

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(0)
callers = []
for _ in range(4):
    caller = socket.socket()
    caller.setblocking(False)
    caller.connect_ex(listener.getsockname())
    callers.append(caller)
print("%s:%d" % listener.getsockname(), flush=True)
signal.pause()
