"""An intake server for survey forms, and the check that a station's upload is taken."""
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from multipart.multipart import parse_options_header

STATION_SEVEN = 'multipart/form-data; boundary="' + "\\" * 64 + "a"


class Intake(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind, options = self.form_kind()
        if kind != b"multipart/form-data" or b"boundary" not in options:
            return self.answer(415, b"not a form")
        parts = body.split(b"--" + options[b"boundary"])
        return self.answer(200, b"%d parts" % max(0, len(parts) - 2))

    def form_kind(self):
        print("ready", flush=True)
        return parse_options_header(self.headers["Content-Type"])  # CULPRIT

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


def upload(address, content_type, body):
    connection = http.client.HTTPConnection(*address)
    connection.request("POST", "/forms", body, {"Content-Type": content_type})
    reply = connection.getresponse()
    return reply.status, reply.read()


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Intake)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="intake", daemon=True).start()
    print(upload(server.server_address, STATION_SEVEN, b"--station-7\r\n\r\n12.5\r\n--station-7--\r\n"))


if __name__ == "__main__":
    main()
