"""A price board: one thread refreshes it from the exchange, others read it."""
import socket
import sys
import threading


class Exchange:
    def __init__(self, address):
        self.sock = socket.create_connection(address)
        self.sock.settimeout(None)

    def quote(self, symbol):
        self.sock.sendall(symbol.encode() + b"\n")
        return float(self.sock.recv(64))  # CULPRIT


class Board:
    def __init__(self, exchange):
        self.exchange = exchange
        self.guard = threading.Lock()
        self.prices = {}
        self.refreshing = threading.Event()

    def refresh(self, symbols):
        with self.guard:
            self.refreshing.set()
            for symbol in symbols:
                self.prices[symbol] = self.exchange.quote(symbol)  # CULPRIT

    def price(self, symbol):
        with self.guard:
            return self.prices[symbol]


def main():
    if len(sys.argv) > 1:
        host, _, port = sys.argv[1].rpartition(":")
        address = host, int(port)
    else:
        stand_in = socket.create_server(("127.0.0.1", 0))
        address = stand_in.getsockname()
    board = Board(Exchange(address))
    threading.Thread(target=board.refresh, args=(["AA", "BB"],), name="refresh", daemon=True).start()
    board.refreshing.wait()
    readers = [threading.Thread(target=board.price, args=("AA",), name="reader-%d" % n, daemon=True) for n in range(3)]
    for reader in readers:
        reader.start()
    print("ready", flush=True)
    for reader in readers:
        reader.join()


if __name__ == "__main__":
    main()
