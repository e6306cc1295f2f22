"""Uploads elevation tiles to an archive on this machine and keeps a list of those to send again."""
import hashlib
import socket
import threading

import urllib3

TILE = 1024 * 1024


class Archive:
    def __init__(self, port):
        self.url = "http://127.0.0.1:%d/tiles/" % port
        self.http = urllib3.PoolManager(maxsize=1, retries=urllib3.Retry(connect=2, backoff_factor=0))

    def put(self, name, tile):
        body = bytes(tile)
        digest = hashlib.sha256(body).hexdigest()
        return self.http.request("PUT", self.url + name, body=body, headers={"X-Digest": digest}, timeout=2.0)


class Uploader:
    def __init__(self, archive):
        self.archive = archive
        self.pending = {}

    def upload(self, number):
        name = "n%03d" % number
        tile = bytearray(TILE)
        tile[0] = number % 256
        try:
            self.archive.put(name, tile)
        except urllib3.exceptions.HTTPError as exc:
            self.pending[name] = exc  # CULPRIT


def unused_port():
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
    return probe, port


def main():
    closed, port = unused_port()  # bound, not listening: the archive is down for maintenance
    uploader = Uploader(Archive(port))
    for number in range(24):
        uploader.upload(number)
    print("ready", flush=True)
    pause = threading.Event()
    for number in range(24, 10_000):
        pause.wait(1.0)
        uploader.upload(number)
    for name, reason in uploader.pending.items():
        print(name, reason)
    closed.close()


if __name__ == "__main__":
    main()
