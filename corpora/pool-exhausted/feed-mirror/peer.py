"""A publisher whose front end turns every first request of a feed away."""
import http.server


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = set()

    def do_GET(self):
        first = self.path not in self.seen
        self.seen.add(self.path)
        text = b"try again\n" if first else b"<item/>" * 2000
        self.send_response(503 if first else 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("%s:%d" % server.server_address[:2], flush=True)
server.serve_forever()
