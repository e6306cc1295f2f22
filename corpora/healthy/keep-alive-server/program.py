"""A line server, a thread a connection, and the terminals that keep their connections open."""
import socket
import socketserver
import threading
import time


class Lines(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class Terminal:
    def __init__(self, address):
        self.sock = socket.create_connection(address, timeout=10)

    def say(self, text):
        self.sock.sendall(text.encode() + b"\n")
        return self.sock.recv(256)


def main():
    server = Server(("127.0.0.1", 0), Lines)
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    terminals = [Terminal(server.server_address) for _ in range(8)]
    for terminal in terminals:
        terminal.say("hello")
    print("ready", flush=True)
    while True:
        time.sleep(2)
        terminals[0].say("still here")


if __name__ == "__main__":
    main()
