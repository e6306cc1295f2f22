"""Toll lanes charge cards through one shared line to the bank."""
import http.client
import sys
import threading


class Bank:
    def __init__(self, address):
        self.lock = threading.RLock()
        self.line = http.client.HTTPConnection(address)
        self.asked = threading.Event()

    def request(self, path):
        with self.lock:  # CULPRIT
            self.line.request("POST", path)
            self.asked.set()
            answer = self.line.getresponse()  # CULPRIT
            return answer.status, answer.read()

    def charge(self, card, cents):
        status, _ = self.request("/charge/%s/%d" % (card, cents))
        return status == 200


class Lane(threading.Thread):
    def __init__(self, number, bank):
        super().__init__(name="lane-%d" % number, daemon=True)
        self.number = number
        self.bank = bank
        self.paid = 0

    def run(self):
        while True:
            if self.bank.charge("C%d-%d" % (self.number, self.paid), 340):
                self.paid += 1


def main():
    bank = Bank(sys.argv[1])
    lanes = [Lane(number, bank) for number in range(8)]
    for lane in lanes:
        lane.start()
    bank.asked.wait()
    print("ready", flush=True)
    for lane in lanes:
        lane.join()


if __name__ == "__main__":
    main()
