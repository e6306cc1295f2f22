"""Checks passwords with the system's crypt(3), in a service with a heartbeat."""
import ctypes
import ctypes.util
import threading
import time


class Crypt:
    def __init__(self):
        self.library = ctypes.PyDLL(ctypes.util.find_library("crypt") or "libcrypt.so.1")  # CULPRIT
        self.library.crypt.restype = ctypes.c_char_p
        self.library.crypt.argtypes = [ctypes.c_char_p, ctypes.c_char_p]

    def hash(self, password, rounds, salt):
        return self.library.crypt(password.encode(), ("$6$rounds=%d$%s" % (rounds, salt)).encode())  # CULPRIT


class Accounts:
    def __init__(self, rounds):
        self.crypt = Crypt()
        self.rounds = rounds
        self.hashes = {}

    def register(self, user, password):
        self.hashes[user] = self.crypt.hash(password, self.rounds, user)


def heartbeat(beats):
    while True:
        beats.append(time.monotonic())
        time.sleep(0.2)


def main():
    threading.Thread(target=heartbeat, args=([],), name="heartbeat", daemon=True).start()
    Accounts(rounds=5000).register("ada", "secret")
    print("ready", flush=True)
    Accounts(rounds=999999999).register("eve", "secret")  # CULPRIT


if __name__ == "__main__":
    main()
