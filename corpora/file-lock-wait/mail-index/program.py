"""A mailbox with an index: the indexer is a service, and every delivery updates the index as well."""
import fcntl
import os
import socket
import subprocess
import sys
import tempfile


class Index:
    def __init__(self, path):
        self.file = open(path, "a+")

    def open_for_update(self):
        fcntl.lockf(self.file, fcntl.LOCK_EX)  # CULPRIT

    def append(self, line):
        self.file.write(line + "\n")
        self.file.flush()

    def done(self):
        fcntl.lockf(self.file, fcntl.LOCK_UN)


def indexer(path):
    index = Index(path)
    index.open_for_update()  # CULPRIT
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(4)
        print(server.getsockname()[1], flush=True)
        while True:
            client, _ = server.accept()
            index.append(client.recv(100).decode())
            client.close()


def deliver(path, mail):
    index = Index(path)
    index.open_for_update()  # CULPRIT
    index.append(mail)
    index.done()


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mail.index")
        service = subprocess.Popen([sys.executable, __file__, path], stdout=subprocess.PIPE)
        service.stdout.readline()
        print("ready", flush=True)
        deliver(path, "from ada")
        service.kill()


if __name__ == "__main__":
    indexer(sys.argv[1]) if len(sys.argv) > 1 else main()
