"""A threaded server with a check of its own: four clients, fifty requests a second each."""
import hashlib
import http.client
import http.server
import threading
import time


class Pages(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = hashlib.sha256(self.path.encode()).hexdigest().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Client(threading.Thread):
    def __init__(self, number, address, answered):
        super().__init__(name="client-%d" % number, daemon=True)
        self.address = address
        self.answered = answered

    def run(self):
        connection = http.client.HTTPConnection(*self.address, timeout=10)
        while True:
            connection.request("GET", "/page/%d" % len(self.answered))
            self.answered.append(connection.getresponse().read())
            time.sleep(0.02)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    answered = []
    for number in range(4):
        Client(number, server.server_address, answered).start()
    print("ready", flush=True)
    while True:
        before = len(answered)
        time.sleep(1)
        print("answered", len(answered) - before, flush=True)


if __name__ == "__main__":
    main()
