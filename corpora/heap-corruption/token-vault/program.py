"""Keeps access tokens in C memory, so that they can be wiped; owned by cffi's garbage-collected handles."""
import threading

from cffi import FFI

ffi = FFI()
ffi.cdef("""
    char *strdup(const char *text);
    void *memset(void *memory, int value, size_t size);
    size_t strlen(const char *text);
    void free(void *memory);
""")
libc = ffi.dlopen(None)


class Token:
    def __init__(self, text):
        self.handle = ffi.gc(libc.strdup(text.encode()), libc.free)  # CULPRIT

    def wipe(self):
        libc.memset(self.handle, 0, libc.strlen(self.handle))
        libc.free(self.handle)  # CULPRIT

    def __str__(self):
        return ffi.string(self.handle).decode()


class Vault:
    def __init__(self):
        self.lock = threading.Lock()
        self.tokens = {}

    def put(self, user, text):
        with self.lock:
            self.tokens[user] = Token(text)

    def forget(self, user):
        with self.lock:
            token = self.tokens.pop(user)
            token.wipe()


class Session:
    def __init__(self, vault, user):
        self.vault = vault
        self.user = user

    def open(self):
        self.vault.put(self.user, "tk-" + self.user * 20)

    def close(self):
        self.vault.forget(self.user)


def work(session, opened, closing):
    session.open()
    opened.set()
    closing.wait()
    session.close()


def main():
    opened, closing = threading.Event(), threading.Event()
    worker = threading.Thread(target=work, args=(Session(Vault(), "marta"), opened, closing), name="session")
    worker.start()
    opened.wait()
    print("ready", flush=True)
    closing.set()
    worker.join()


if __name__ == "__main__":
    main()
