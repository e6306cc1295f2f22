"""Archives the readings of probes; each probe's spool goes to the store when it is done."""
import socket
import sys
import threading


class Store:
    """The long-term store; it confirms what it has got."""

    def __init__(self, address):
        self.sock = socket.create_connection(address)
        self.sock.settimeout(None)  # CULPRIT
        self.sending = threading.Event()

    def send(self, rows):
        self.sock.sendall(("%d rows\n" % len(rows)).encode())
        self.sending.set()
        return self.sock.recv(16)  # CULPRIT


class Spool:
    def __init__(self, store, probe):
        self.store = store
        self.probe = probe
        self.rows = []

    def flush(self):
        rows, self.rows = self.rows, []
        return self.store.send(rows)

    def __del__(self):
        if self.rows:
            self.flush()  # CULPRIT


class Archive:
    def __init__(self, store):
        self.store = store
        self.lock = threading.Lock()
        self.spools = {}

    def open(self, probe):
        with self.lock:
            self.spools[probe] = Spool(self.store, probe)

    def add(self, probe, value):
        with self.lock:
            self.spools[probe].rows.append(value)


def rotate(archive):
    archive.add("well-1", 7.1)
    archive.open("well-1")


def main():
    if len(sys.argv) > 1:
        host, _, port = sys.argv[1].rpartition(":")
        address = host, int(port)
    else:
        stand_in = socket.create_server(("127.0.0.1", 0))
        address = stand_in.getsockname()
    archive = Archive(Store(address))
    archive.open("well-1")
    rotation = threading.Thread(target=rotate, args=(archive,), name="rotation", daemon=True)
    rotation.start()
    archive.store.sending.wait()
    probes = [threading.Thread(target=archive.add, args=("well-1", n), name="probe-%d" % n, daemon=True) for n in range(2)]
    for probe in probes:
        probe.start()
    print("ready", flush=True)
    for probe in probes:
        probe.join()


if __name__ == "__main__":
    main()
