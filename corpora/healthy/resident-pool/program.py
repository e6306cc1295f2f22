"""Scales pictures in a pool of processes, as requests come in on a socket."""
import multiprocessing
import socket


def scale(size):
    return max(1, size // 2)


class Scaler:
    def __init__(self, pool):
        self.pool = pool
        self.server = socket.create_server(("127.0.0.1", 0))

    def handle(self, request):
        return self.pool.map(scale, map(int, request.split()))

    def serve(self):
        while True:
            client, _ = self.server.accept()
            with client:
                sizes = self.handle(client.recv(1000))
                client.sendall(" ".join(map(str, sizes)).encode())


def main():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        scaler = Scaler(pool)
        print("first", scaler.handle("100 50"))
        print("ready", flush=True)
        scaler.serve()


if __name__ == "__main__":
    main()
