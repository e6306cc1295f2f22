"""Copies an archive's index from a mirror; after a refusal it tries again, later and later."""
import socket
import time


class Refused(Exception):
    pass


class Mirror:
    def __init__(self):
        self.probe = socket.socket()
        self.probe.bind(("127.0.0.1", 0))  # not listening: the mirror is being serviced

    def fetch(self, part):
        block = bytearray(24 * 1024 * 1024)
        try:
            with socket.create_connection(self.probe.getsockname(), timeout=2.0) as line:
                line.recv_into(block)
        except OSError as exc:
            raise Refused("part %d" % part) from exc
        return bytes(block)


def pause_after(attempt):
    return 0.01 * 90 ** attempt  # CULPRIT


def sync(mirror, parts):
    for part in range(parts):
        for attempt in range(8):
            try:
                mirror.fetch(part)
                break
            except Refused as exc:
                print("%s: again in %.1f s" % (exc, pause_after(attempt)), flush=True)
                if attempt == 2:
                    print("ready", flush=True)
                time.sleep(pause_after(attempt))  # CULPRIT


def main():
    sync(Mirror(), parts=10)


if __name__ == "__main__":
    main()
