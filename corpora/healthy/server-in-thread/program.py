"""Starts the service in a thread and has nothing else to do."""
import socketserver
import threading


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline())


server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo)
threading.Thread(target=server.serve_forever, name="service").start()
print("ready", flush=True)
