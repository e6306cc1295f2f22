"""A prefork server: workers accept on one socket and tell the master through a pipe when they have served."""
import os
import socket


class Master:
    def __init__(self, workers):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.reader, self.writer = os.pipe()
        self.workers = [self.spawn() for _ in range(workers)]
        os.close(self.writer)
        self.served = 0

    def spawn(self):
        pid = os.fork()
        if pid == 0:
            os.close(self.reader)
            self.work()
        return pid

    def work(self):
        while True:
            client, _ = self.server.accept()
            client.sendall(b"hello\n")
            client.close()
            os.write(self.writer, b".")

    def run(self):
        while True:
            news = os.read(self.reader, 100)
            if not news:
                break
            self.served += len(news)
            print("served", self.served, flush=True)


def main():
    master = Master(workers=3)
    socket.create_connection(master.server.getsockname()).close()
    print("ready", flush=True)
    master.run()


if __name__ == "__main__":
    main()
