"""Tide tables over HTTP with uvicorn; a harbour's display asks for them some twenty times a second."""
import http.client
import json
import socket
import threading
import time

import uvicorn

TABLES = {"%02d" % port: [(hour, 200 + (port * 37 + hour * 61) % 180) for hour in range(24)] for port in range(40)}


async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    table = TABLES.get(scope["path"].strip("/"))
    body = json.dumps(table).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200 if table else 404, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def display(port, shown):
    line = http.client.HTTPConnection("127.0.0.1", port)
    for turn in range(1_000_000):
        line.request("GET", "/%02d" % (turn % 40))
        shown[turn % 40] = json.loads(line.getresponse().read())
        if turn == 5:
            print("ready", flush=True)
        time.sleep(0.05)


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    shown = {}
    threading.Thread(target=display, args=(listener.getsockname()[1], shown), name="display", daemon=True).start()
    server = uvicorn.Server(uvicorn.Config(application, log_level="error", lifespan="off", loop="asyncio"))
    server.run(sockets=[listener])


if __name__ == "__main__":
    main()
