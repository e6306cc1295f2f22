"""Sends the day's receipts of a till to the head office."""
import json
import socket
import sys


class HeadOffice:
    def __init__(self, host, port):
        self.host = host
        self.port = port

    def addresses(self):
        for family, kind, proto, _, address in socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM):
            yield family, kind, proto, address

    def connect(self):
        failure = OSError("%s has no address" % self.host)
        for family, kind, proto, address in self.addresses():
            line = socket.socket(family, kind, proto)
            try:
                line.connect(address)  # CULPRIT
                return line
            except OSError as exc:
                line.close()
                failure = exc
        raise failure


def send(office, receipts):
    line = office.connect()  # CULPRIT
    with line:
        for receipt in receipts:
            line.sendall(json.dumps(receipt).encode() + b"\n")
        return line.recv(64)


def main():
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "localhost:9").rpartition(":")
    receipts = [{"number": n, "cents": 100 + 7 * n} for n in range(40)]
    print("ready", flush=True)
    print(send(HeadOffice(host, int(port)), receipts))


if __name__ == "__main__":
    main()
