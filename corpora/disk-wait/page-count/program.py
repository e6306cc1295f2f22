"""Counts the pages that the scanners have put on their share, from the index file there."""
import os
import subprocess
import sys
import tempfile

import share


def count(path):
    pages = 0
    with open(path, "rb") as index:
        for line in index:  # CULPRIT
            pages += int(line.split(b";")[1])
    return pages


def main():
    folder = tempfile.mkdtemp()
    line = share.mount(folder)
    server = subprocess.Popen([sys.executable, share.__file__, str(line)], pass_fds=[line])
    os.close(line)
    path = os.path.join(folder, "index.csv")
    print("index of", os.path.getsize(path), "bytes")
    print("ready", flush=True)
    print(count(path), "pages")
    server.terminate()


if __name__ == "__main__":
    main()
