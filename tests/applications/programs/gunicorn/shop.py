import os
import threading
import time
import urllib.request
from pathlib import Path

accounts = {"1": threading.Lock(), "2": threading.Lock()}


def transfer(giver, taker):
    with accounts[giver]:
        time.sleep(0.5)
        Path(os.environ["READY"]).touch()
        with accounts[taker]:  # HANG transfer
            return b"done"


def rates():
    Path(os.environ["READY"]).touch()
    with urllib.request.urlopen(os.environ["SILENT_URL"]) as answer:  # HANG rates
        return answer.read()


def application(environ, start_response):
    parts = environ["PATH_INFO"].strip("/").split("/")
    body = b"hello"
    if parts[0] == "transfer":
        body = transfer(parts[1], parts[2])
    elif parts[0] == "rates":
        body = rates()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
