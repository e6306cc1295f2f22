"""A host for plug-ins, which are shared libraries; they are loaded in the background while it starts."""
import ctypes
import os
import tempfile
import threading


class Loader:
    """Loads libraries by the C library, without holding up the interpreter."""

    NOW = 2

    def __init__(self):
        self.libc = ctypes.CDLL(None)
        self.libc.dlopen.restype = ctypes.c_void_p

    def load(self, path):
        return self.libc.dlopen(os.fsencode(path), self.NOW)  # CULPRIT


class Plugin:
    def __init__(self, folder, name, loader):
        self.path = os.path.join(folder, name)
        self.loader = loader
        self.handle = None

    def fetch(self):
        """The registry serves the file through a pipe; this one never answers."""
        os.mkfifo(self.path)

    def open(self, loading):
        loading.set()
        self.handle = self.loader.load(self.path)


class Host:
    def __init__(self, names):
        self.folder = tempfile.mkdtemp()
        loader = Loader()
        self.plugins = [Plugin(self.folder, name, loader) for name in names]

    def start(self):
        loading = threading.Event()
        for plugin in self.plugins:
            plugin.fetch()
            threading.Thread(target=plugin.open, args=(loading,), name="plugin", daemon=True).start()  # CULPRIT
        loading.wait()

    def serve(self, orders):
        return [order.upper() for order in orders]


def main():
    host = Host(["prices.so"])
    host.start()
    threading.Event().wait(0.3)
    print(host.serve(["a", "b"]))
    print("ready", flush=True)


if __name__ == "__main__":
    main()
