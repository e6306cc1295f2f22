"""Makes previews of all pictures of an archive with a pool of threads."""
import concurrent.futures
import time


class Archive:
    def __init__(self, count):
        self.count = count

    def pictures(self):
        for number in range(self.count):
            yield "%05d/%03d.png" % divmod(number, 1000)
            if number % 4 == 0:
                time.sleep(0.01)


class Previewer:
    def __init__(self, workers):
        self.pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="preview")
        self.made = 0
        self.failed = []

    def preview(self, picture, edge):
        time.sleep(0.03)
        return picture, edge

    def finished(self, job):
        if job.exception() is not None:
            self.failed.append(job.exception())
        self.made += 1

    def make_all(self, archive):
        for picture in archive.pictures():
            for edge in (128, 512):
                job = self.pool.submit(self.preview, picture, edge)  # CULPRIT
                job.add_done_callback(self.finished)


def main():
    previewer = Previewer(workers=4)
    print("ready", flush=True)
    previewer.make_all(Archive(400000))
    previewer.pool.shutdown()
    print("made", previewer.made, "failed", len(previewer.failed))


if __name__ == "__main__":
    main()
