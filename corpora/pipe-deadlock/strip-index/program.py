"""Makes an index of small pictures of a film: a decoder delivers the frames, one after the other."""
import sys

import ffmpeg

WIDTH, HEIGHT = 64, 36
FRAME = WIDTH * HEIGHT * 3


class Film:
    def __init__(self, path, decoder):
        self.path = path
        self.decoder = decoder

    def frames(self):
        size = "%dx%d" % (WIDTH, HEIGHT)
        stream = ffmpeg.input(self.path).output("pipe:", format="rawvideo", pix_fmt="rgb24", s=size)
        process = ffmpeg.run_async(stream, cmd=self.decoder, pipe_stdout=True, pipe_stderr=True)  # CULPRIT
        while True:
            frame = process.stdout.read(FRAME)  # CULPRIT
            if len(frame) < FRAME:
                break
            yield frame
        process.wait()
        self.log = process.stderr.read()


class Index:
    def __init__(self, every):
        self.every = every
        self.pictures = []

    def add(self, number, frame):
        if number % self.every == 0:
            self.pictures.append((number, sum(frame[::97]) // len(frame[::97])))

    def build(self, film):
        for number, frame in enumerate(film.frames()):
            self.add(number, frame)
        return self.pictures


def main():
    film = Film("harbour.mkv", [sys.executable, "decoder.py"])
    index = Index(every=25)
    print("ready", flush=True)
    print(len(index.build(film)), "pictures")


if __name__ == "__main__":
    main()
