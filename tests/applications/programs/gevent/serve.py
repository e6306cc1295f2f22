from gevent import monkey

monkey.patch_all()

import os
from pathlib import Path

import gevent
from gevent.lock import BoundedSemaphore
from gevent.pywsgi import WSGIServer

rooms = {"1": BoundedSemaphore(1), "2": BoundedSemaphore(1)}
finished = []


def spin():
    Path(os.environ["READY"]).touch()
    while not finished:  # HANG spin
        pass  # HANG spin
    return b"done"


def swap(mine, theirs):
    with rooms[mine]:
        gevent.sleep(0.5)
        Path(os.environ["READY"]).touch()
        with rooms[theirs]:  # HANG swap
            return b"done"


def application(environ, start_response):
    parts = environ["PATH_INFO"].strip("/").split("/")
    body = b"hello"
    if parts[0] == "spin":
        body = spin()
    elif parts[0] == "swap":
        body = swap(parts[1], parts[2])
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


WSGIServer(("127.0.0.1", int(os.environ["PORT"])), application, log=None).serve_forever()
