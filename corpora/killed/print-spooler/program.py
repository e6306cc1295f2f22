"""Spools documents for the printers of an office: clients hand them in over a local socket, the main thread prints."""
import queue
import socketserver
import threading


class Document:
    def __init__(self, owner, pages):
        self.owner = owner
        self.pages = pages


class Spool:
    def __init__(self):
        self.documents = queue.Queue(maxsize=100)
        self.printed = 0

    def put(self, document):
        self.documents.put(document)

    def next(self):
        return self.documents.get()  # CULPRIT

    def done(self, document):
        self.printed += document.pages


class Intake(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            owner, pages = line.decode().split()
            self.server.spool.put(Document(owner, int(pages)))
            self.wfile.write(b"accepted\n")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, spool):
        super().__init__(("127.0.0.1", 0), Intake)
        self.spool = spool


class Office:
    def __init__(self):
        self.spool = Spool()
        self.server = Server(self.spool)
        self.thread = threading.Thread(target=self.server.serve_forever, name="intake", daemon=True)

    def run(self):
        self.thread.start()
        self.spool.put(Document("test page", 1))
        while True:
            document = self.spool.next()  # CULPRIT
            self.spool.done(document)
            if self.spool.documents.empty():
                print("ready", flush=True)


def main():
    Office().run()


if __name__ == "__main__":
    main()
