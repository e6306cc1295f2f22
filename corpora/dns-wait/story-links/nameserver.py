"""Names of the branch's network are known to its own name server only; its address comes with the order sheet.

The C library keeps the servers that it asks per thread, so this is for the thread that calls it.
"""
import ctypes
import socket
import struct

libc = ctypes.CDLL(None)


class Address(ctypes.Structure):
    _fields_ = [
        ("family", ctypes.c_uint16),
        ("port", ctypes.c_uint16),
        ("host", ctypes.c_uint32),
        ("zero", ctypes.c_char * 8),
    ]


class State(ctypes.Structure):
    _fields_ = [
        ("pause", ctypes.c_int),
        ("attempts", ctypes.c_int),
        ("options", ctypes.c_ulong),
        ("count", ctypes.c_int),
        ("servers", Address * 3),
    ]


def ask(host, port, pause=30, attempts=5):
    libc.__res_init()
    place = libc.__res_state
    place.restype = ctypes.POINTER(State)
    state = place().contents
    state.pause, state.attempts, state.count = pause, attempts, 1
    number = struct.unpack("=I", socket.inet_aton(host))[0]
    state.servers[0] = Address(socket.AF_INET, socket.htons(port), number, b"")
