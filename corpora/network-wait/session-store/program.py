"""A shop's checkout: a pool of threads handles orders, and each order needs the customer's session from Redis."""
import concurrent.futures
import json
import sys
import threading

import redis


class SessionStore:
    def __init__(self, client, prefix):
        self.client = client
        self.prefix = prefix

    def load(self, key):
        text = self.client.get(self.prefix + key)  # CULPRIT
        return json.loads(text) if text else {}


class CachedSessions:
    """What has been loaded once is not loaded again; one loader a key."""

    def __init__(self, store):
        self.store = store
        self.known = {}
        self.guard = threading.Lock()
        self.loading = {}

    def get(self, key):
        with self.guard:
            lock = self.loading.setdefault(key, threading.Lock())
        with lock:
            if key not in self.known:
                self.known[key] = self.store.load(key)
            return self.known[key]


class Checkout:
    def __init__(self, sessions):
        self.sessions = sessions

    def handle(self, order):
        session = self.sessions.get(order["customer"])
        return order["number"], session.get("discount", 0)


def main():
    host, _, port = sys.argv[1].rpartition(":")
    client = redis.Redis(host=host, port=int(port), socket_connect_timeout=2, decode_responses=True)  # CULPRIT
    checkout = Checkout(CachedSessions(SessionStore(client, "session:")))
    orders = [{"number": number, "customer": "c%d" % (number % 2)} for number in range(6)]
    with concurrent.futures.ThreadPoolExecutor(6, thread_name_prefix="order") as pool:
        answers = [pool.submit(checkout.handle, order) for order in orders]
        print("ready", flush=True)
        for answer in concurrent.futures.as_completed(answers):
            print(*answer.result())


if __name__ == "__main__":
    main()
