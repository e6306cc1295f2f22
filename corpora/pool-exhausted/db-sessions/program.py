"""A shop on a small pool of database sessions."""
import contextlib
import queue
import threading


class Session:
    def __init__(self, number):
        self.number = number

    def execute(self, statement):
        return "%d: %s" % (self.number, statement)


class SessionPool:
    def __init__(self, size):
        self.free = queue.LifoQueue()
        for number in range(size):
            self.free.put(Session(number))

    @contextlib.contextmanager
    def session(self):
        session = self.free.get()  # CULPRIT
        try:
            yield session
        finally:
            self.free.put(session)


class Checkout:
    def __init__(self, pool, together):
        self.pool = pool
        self.together = together

    def next_number(self):
        with self.pool.session() as session:  # CULPRIT
            return session.execute("update counters")

    def order(self, cart):
        with self.pool.session() as session:  # CULPRIT
            session.execute("begin")
            self.together.wait()
            number = self.next_number()  # CULPRIT
            return session.execute("insert %s %s" % (number, cart))


def main():
    checkout = Checkout(SessionPool(size=3), threading.Barrier(3))
    carts = [threading.Thread(target=checkout.order, args=("cart-%d" % n,), name="checkout-%d" % n) for n in range(3)]
    for cart in carts:
        cart.start()
    print("ready", flush=True)
    for cart in carts:
        cart.join()


if __name__ == "__main__":
    main()
