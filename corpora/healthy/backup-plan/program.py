"""Plans backups with APScheduler: a quick check every second, and a nightly job that is hours away."""
import threading
import zlib

from apscheduler.schedulers.background import BackgroundScheduler


class Backups:
    def __init__(self):
        self.checked = 0
        self.written = 0

    def check(self):
        zlib.crc32(bytes(200_000))
        self.checked += 1

    def write(self):
        self.written += 1


def main():
    backups = Backups()
    scheduler = BackgroundScheduler(timezone="UTC")
    scheduler.add_job(backups.check, "interval", seconds=1)
    scheduler.add_job(backups.write, "interval", hours=8)
    scheduler.start()
    print("ready", flush=True)
    closing = threading.Event()
    try:
        closing.wait()
    except KeyboardInterrupt:
        scheduler.shutdown()


if __name__ == "__main__":
    main()
