"""The weather service: reads what it is asked, and says nothing."""
import selectors
import socket

listener = socket.create_server(("127.0.0.1", 0))
print("%s:%d" % listener.getsockname(), flush=True)
watched = selectors.DefaultSelector()
watched.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in watched.select():
        if key.fileobj is listener:
            watched.register(listener.accept()[0], selectors.EVENT_READ)
        elif not key.fileobj.recv(65536):
            watched.unregister(key.fileobj)
            key.fileobj.close()
