"""A kiosk's service: at most one runs on a machine, which a locked file makes sure of; it answers its screen."""
import http.server
import os
import tempfile
import threading

import fasteners


class Screen(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = b"Track 4, 10:42\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


class Kiosk:
    def __init__(self, folder):
        self.only_one = fasteners.InterProcessLock(os.path.join(folder, "kiosk.pid"))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Screen)

    def run(self):
        if not self.only_one.acquire(blocking=False):
            raise SystemExit("a kiosk runs already")
        try:
            threading.Thread(target=self.server.serve_forever, name="screen", daemon=True).start()
            print("ready", flush=True)
            threading.Event().wait(3600)
        finally:
            self.only_one.release()


def main():
    with tempfile.TemporaryDirectory() as folder:
        Kiosk(folder).run()


if __name__ == "__main__":
    main()
