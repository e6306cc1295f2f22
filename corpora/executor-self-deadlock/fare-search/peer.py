"""An airline's service: fares and their conditions."""
import http.server
import json


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        _, kind, name = self.path.split("/")
        body = {"route": name, "class": "M", "price": len(name) * 11} if kind == "fares" else {"refundable": False}
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("%s:%d" % server.server_address[:2], flush=True)
server.serve_forever()
