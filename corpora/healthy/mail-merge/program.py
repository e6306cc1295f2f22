"""Merges letters in dramatiq workers; the stub broker stands in for the real one."""
import time

import dramatiq
from dramatiq.brokers.stub import StubBroker

broker = StubBroker(middleware=[])
dramatiq.set_broker(broker)
merged = {}


@dramatiq.actor
def merge(number, name):
    text = "\n".join("Dear %s, your contract %d ..." % (name, number) for _ in range(2000))
    merged[number % 100] = len(text)


def main():
    broker.declare_queue("default")
    worker = dramatiq.Worker(broker, worker_threads=4, worker_timeout=200)
    worker.start()
    merge.send(0, "Ada")
    broker.join("default")
    print("ready", flush=True)
    for number in range(1, 1_000_000):
        merge.send(number, "Grace")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
