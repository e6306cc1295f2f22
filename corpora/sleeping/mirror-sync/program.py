"""Keeps a copy of a package list up to date."""
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import urllib3
from urllib3.util import Retry, Timeout


class Mirror(BaseHTTPRequestHandler):
    """Stands in for the mirror of the list, which has its maintenance at night."""

    def do_GET(self):
        if self.path == "/stamp":
            self.send_response(200)
            body = b"20241107"
        else:
            self.send_response(503)
            self.send_header("Retry-After", "3600")
            body = b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class PackageList:
    def __init__(self, base):
        self.base = base
        self.pool = urllib3.PoolManager(
            timeout=Timeout(connect=2, read=5),
            retries=Retry(total=4, backoff_factor=0.1, status_forcelist=[502, 503]),  # CULPRIT
        )

    def get(self, path):
        return self.pool.request("GET", self.base + path).data  # CULPRIT

    def update(self, seen):
        stamp = self.get("/stamp").decode()
        return (stamp, self.get("/packages")) if stamp > seen else (seen, None)


def main():
    if len(sys.argv) > 1:
        base = "http://" + sys.argv[1]
    else:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
        threading.Thread(target=server.serve_forever, name="mirror", daemon=True).start()
        base = "http://127.0.0.1:%d" % server.server_port
    print("ready", flush=True)
    print(PackageList(base).update(seen="20241031"))


if __name__ == "__main__":
    main()
