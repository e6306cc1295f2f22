"""Makes thumbnails in a pool; large pictures wait for an approval."""
import concurrent.futures
import threading


class Approval:
    """Set by an operator's click."""

    def __init__(self):
        self._given = threading.Event()

    def give(self):
        self._given.set()

    def require(self):
        self._given.wait()  # CULPRIT


class Picture:
    def __init__(self, number, size):
        self.number = number
        self.size = size


class Thumbnailer:
    limit = 4000

    def __init__(self, workers):
        self.pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="thumbs")
        self.approvals = {}

    def make(self, picture):
        if picture.size > self.limit:
            self.approvals[picture.number] = Approval()
            self.approvals[picture.number].require()  # CULPRIT
        return picture.number, picture.size // 10

    def submit(self, pictures):
        return [self.pool.submit(self.make, picture) for picture in pictures]


class Gallery:
    def __init__(self):
        self.thumbnailer = Thumbnailer(workers=3)
        self.shown = []

    def publish(self, pictures):
        jobs = self.thumbnailer.submit(pictures)
        done, waiting = concurrent.futures.wait(jobs, timeout=0.3)
        self.shown.extend(job.result() for job in done)
        return len(waiting)


def main():
    gallery = Gallery()
    left = gallery.publish([Picture(n, 900 * (n + 1)) for n in range(5)])
    print("shown", len(gallery.shown), "left", left)
    print("ready", flush=True)


if __name__ == "__main__":
    main()
