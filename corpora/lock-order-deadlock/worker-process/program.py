"""Renders pages in a worker process, which has two threads of its own."""
import multiprocessing
import signal
import sys
import threading


class Fonts:
    def __init__(self):
        self.lock = threading.Lock()
        self.loaded = set()


class Glyphs:
    def __init__(self, fonts):
        self.lock = threading.Lock()
        self.fonts = fonts
        self.cache = {}

    def draw(self, text, meet):
        with self.lock:
            meet.wait()
            with self.fonts.lock:  # CULPRIT
                self.cache[text] = sorted(self.fonts.loaded)


class Preloader(threading.Thread):
    def __init__(self, glyphs, meet):
        super().__init__(name="preload", daemon=True)
        self.glyphs = glyphs
        self.meet = meet

    def run(self):
        with self.glyphs.fonts.lock:
            self.meet.wait()
            with self.glyphs.lock:  # CULPRIT
                self.glyphs.cache.clear()


def render(text):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    meet = threading.Barrier(2)
    glyphs = Glyphs(Fonts())
    Preloader(glyphs, meet).start()
    print("ready", flush=True)
    glyphs.draw(text, meet)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    worker = multiprocessing.get_context("fork").Process(target=render, args=("page 1",), daemon=True)
    worker.start()
    worker.join()


if __name__ == "__main__":
    main()
