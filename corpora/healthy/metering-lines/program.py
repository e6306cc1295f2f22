"""A gateway for electricity meters on twisted: meters report, a looping call writes the sums, lookups run in its threads."""
from twisted.internet import endpoints, protocol, reactor, task, threads
from twisted.protocols.basic import LineReceiver


class MeterLine(LineReceiver):
    delimiter = b"\n"

    def lineReceived(self, line):
        meter, _, value = line.partition(b" ")
        self.factory.readings[meter] = self.factory.readings.get(meter, 0) + int(value)
        self.sendLine(b"ok")


class Gateway(protocol.Factory):
    protocol = MeterLine

    def __init__(self):
        self.readings = {}
        self.written = 0

    def write_sums(self):
        return threads.deferToThread(self.store, dict(self.readings))

    def store(self, readings):
        self.written += len(readings)


class Meter(LineReceiver):
    delimiter = b"\n"

    def connectionMade(self):
        self.count = 0
        self.report()

    def report(self):
        self.count += 1
        self.sendLine(b"meter-7 %d" % self.count)

    def lineReceived(self, line):
        reactor.callLater(0.3, self.report)
        if self.count == 1:
            print("ready", flush=True)


def main():
    gateway = Gateway()

    def listening(port):
        endpoint = endpoints.TCP4ClientEndpoint(reactor, "127.0.0.1", port.getHost().port)
        return endpoints.connectProtocol(endpoint, Meter())

    endpoints.TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(gateway).addCallback(listening)
    task.LoopingCall(gateway.write_sums).start(1.0, now=False)
    reactor.run()


if __name__ == "__main__":
    main()
