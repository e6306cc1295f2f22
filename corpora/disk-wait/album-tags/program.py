"""Lists artist and title of the pieces of an album that lies on a share."""
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import mutagen.id3

import share


class Piece:
    def __init__(self, path):
        self.path = path

    def tags(self):
        try:
            tags = mutagen.id3.ID3(self.path)  # CULPRIT
        except mutagen.MutagenError:
            return None
        return tags.getall("TPE1"), tags.getall("TIT2")


class Album:
    def __init__(self, folder, pieces):
        self.pieces = [Piece(os.path.join(folder, "%02d.mp3" % number)) for number in range(1, pieces + 1)]

    def listing(self, readers):
        with ThreadPoolExecutor(readers, thread_name_prefix="tags") as pool:
            for piece, tags in zip(self.pieces, pool.map(Piece.tags, self.pieces)):
                yield os.path.basename(piece.path), tags


def main():
    folder = tempfile.mkdtemp()
    line = share.mount(folder)
    server = subprocess.Popen([sys.executable, share.__file__, str(line)], pass_fds=[line])
    os.close(line)
    os.stat(os.path.join(folder, "01.mp3"))
    print("ready", flush=True)
    for name, tags in Album(folder, 6).listing(readers=2):
        print(name, *(tags or ["-"]))
    server.terminate()


if __name__ == "__main__":
    main()
