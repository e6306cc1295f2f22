"""The album share: a file server of our own in front of the record library."""
import ctypes
import os
import signal
import struct
import sys
import zlib

LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, INTERRUPT = 1, 2, 3, 14, 15, 26, 36
HEADER = struct.Struct("<IIQQIIII")
ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
libc = ctypes.CDLL(None, use_errno=True)


def mount(folder):
    """Mounts the share in a name space of this process and its children; gives back the server's descriptor."""
    line = os.open("/dev/fuse", os.O_RDWR)
    options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % line
    if libc.unshare(0x00020000) or libc.mount(b"albums", os.fsencode(folder), b"fuse", 0, options):
        raise OSError(ctypes.get_errno(), "mount")
    return line


def attributes(node):
    mode, size = (0o040755, 0) if node == 1 else (0o100644, 4 << 20)
    return ATTRIBUTES.pack(node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class Server:
    def __init__(self, line):
        self.line = line
        self.fetching = []

    def answer(self, unique, body=b"", error=0):
        os.write(self.line, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)

    def serve(self):
        while True:
            request = os.read(self.line, 1 << 18)
            _, what, unique, node, *_ = HEADER.unpack_from(request)
            if what == INIT:
                terms = struct.pack("<IIIIHHIIHH", 7, 31, 1 << 17, 1, 12, 9, 1 << 17, 1, 32, 0)
                self.answer(unique, terms.ljust(64, b"\0"))
            elif what == GETATTR:
                self.answer(unique, struct.pack("<QII", 60, 0, 0) + attributes(node))
            elif what == LOOKUP:
                node = 2 + zlib.crc32(request[HEADER.size :])
                self.answer(unique, struct.pack("<QQQQII", node, 0, 60, 60, 0, 0) + attributes(node))
            elif what == OPEN:
                self.answer(unique, struct.pack("<QII", 1, 0, 0))
            elif what == READ:
                self.fetching.append(unique)  # CULPRIT
            elif what not in (FORGET, INTERRUPT):
                self.answer(unique, error=38)


if __name__ == "__main__":
    libc.prctl(1, signal.SIGKILL)
    Server(int(sys.argv[1])).serve()
