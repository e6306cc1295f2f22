"""Keeps quotas of tenants; a nightly sweep resets them in the background."""
import threading
import time


class QuotaTable:
    def __init__(self, limits):
        self._lock = threading.RLock()
        self._limits = dict(limits)
        self._used = {tenant: 0 for tenant in limits}

    def begin(self):
        self._lock.acquire()  # CULPRIT
        return dict(self._used)

    def commit(self, used):
        self._used = used
        self._lock.release()

    def charge(self, tenant, amount):
        with self._lock:
            if self._used[tenant] + amount > self._limits[tenant]:
                raise ValueError("over quota: " + tenant)
            self._used[tenant] += amount


def sweep(table, exempt):
    used = table.begin()  # CULPRIT
    if not set(used) - exempt:
        return  # CULPRIT
    for tenant in used:
        if tenant not in exempt:
            used[tenant] = 0
    table.commit(used)


def serve(table, tenant):
    while True:
        table.charge(tenant, 1)
        time.sleep(0.05)


def main():
    table = QuotaTable({"blue": 1_000_000, "green": 1_000_000})
    servers = [threading.Thread(target=serve, args=(table, tenant), name="serve-" + tenant) for tenant in ("blue", "green")]
    for server in servers:
        server.start()
    nightly = threading.Thread(target=sweep, args=(table, {"blue", "green"}), name="nightly-sweep")
    nightly.start()
    nightly.join()
    print("ready", flush=True)
    for server in servers:
        server.join()


if __name__ == "__main__":
    main()
