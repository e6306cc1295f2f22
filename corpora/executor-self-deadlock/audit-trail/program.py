"""Stores documents in the background; an audit entry is written before a document counts as stored."""
import concurrent.futures
import threading

BACKGROUND = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="background")


class Audit:
    def __init__(self):
        self.lines = []

    def write(self, line):
        self.lines.append(line)
        return len(self.lines)

    def record(self, line):
        """Returns when the line is written."""
        job = BACKGROUND.submit(self.write, line)
        concurrent.futures.wait([job])  # CULPRIT
        return job.result()


class Store:
    def __init__(self, audit):
        self.audit = audit
        self.documents = {}
        self.lock = threading.Lock()

    def put(self, name, text):
        number = self.audit.record("put " + name)  # CULPRIT
        with self.lock:
            self.documents[name] = (number, text)

    def put_later(self, name, text):
        return BACKGROUND.submit(self.put, name, text)


def main():
    store = Store(Audit())
    store.put("index", "...")
    print("ready", flush=True)
    jobs = [store.put_later("page-%d" % n, "...") for n in range(3)]
    for job in concurrent.futures.as_completed(jobs):
        job.result()


if __name__ == "__main__":
    main()
