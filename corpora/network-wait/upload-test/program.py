"""The test of an upload client against a server in the same process."""
import http.server
import socket
import threading
import unittest


class Uploads(http.server.BaseHTTPRequestHandler):
    stored = []

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.stored.append(self.rfile.read(length))  # CULPRIT
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args):
        pass


class UploadClient:
    def __init__(self, address):
        self.sock = socket.create_connection(address)

    def upload(self, text):
        head = "POST /files HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (len(text) + 2)
        self.sock.sendall(head.encode() + text.encode())
        return self.sock.recv(1024)  # CULPRIT


class UploadTest(unittest.TestCase):
    def setUp(self):
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Uploads)
        threading.Thread(target=self.server.serve_forever, name="server", daemon=True).start()

    def test_a_text_is_stored(self):
        client = UploadClient(self.server.server_address)
        print("ready", flush=True)
        self.assertIn(b"204", client.upload("hello"))
        self.assertEqual(Uploads.stored, [b"hello"])


if __name__ == "__main__":
    unittest.main()
