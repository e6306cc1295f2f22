"""Three processes sort a star catalogue that the first one asks an archive for, piece by piece."""
import multiprocessing
import socket
import sys


class Group:
    def __init__(self, size):
        self.size = size
        self.slots = multiprocessing.Array("i", 64, lock=False)
        self.gate = multiprocessing.Barrier(size)

    def barrier(self):
        self.gate.wait()

    def broadcast(self, rank, values):
        if rank == 0:
            self.slots[: len(values)] = values
        self.gate.wait()
        out = list(self.slots)
        self.gate.wait()
        return out


class Archive:
    def __init__(self, address):
        self.sock = socket.create_connection(address)
        self.sock.settimeout(None)

    def piece(self, number):
        self.sock.sendall(b"PIECE %d\n" % number)
        return list(self.sock.recv(64))  # CULPRIT


def sort_stars(rank, group, address):
    archive = Archive(address) if rank == 0 else None  # CULPRIT
    group.barrier()
    if rank == 0:
        print("ready", flush=True)
    brightest = []
    for number in range(1000):
        values = group.broadcast(rank, archive.piece(number) if archive else None)
        brightest = sorted(brightest + values[rank :: group.size])[-100:]
    group.barrier()


def main():
    if len(sys.argv) > 1:
        host, _, port = sys.argv[1].rpartition(":")
        address = host, int(port)
    else:
        stand_in = socket.create_server(("127.0.0.1", 0))
        address = stand_in.getsockname()
    group = Group(3)
    ranks = [multiprocessing.Process(target=sort_stars, args=(rank, group, address), daemon=True) for rank in range(3)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()


if __name__ == "__main__":
    main()
