"""Takes the flight numbers of a day apart with the C library, as the old reservation system did."""
import ctypes

libc = ctypes.CDLL(None)
libc.strdup.restype = ctypes.c_void_p
libc.strdup.argtypes = [ctypes.c_char_p]
libc.strsep.restype = ctypes.c_char_p
libc.strsep.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p]
libc.free.argtypes = [ctypes.c_void_p]

FLIGHTS = ["LH 1234/FRA-OSL/0710", "SK 88/OSL-TRD/0955", "AY 431/HEL-RIX/1830/codeshare of the day"]


def fields(flight, count=3):
    """The first fields, and how much is left of the text."""
    text = ctypes.c_void_p(libc.strdup(flight.encode()))
    found = []
    while len(found) < count and text.value:
        found.append(libc.strsep(ctypes.byref(text), b"/").decode())
    libc.free(text)  # CULPRIT
    return found


def timetable(flights):
    table = {}
    for flight in flights:
        number, leg, time = fields(flight)
        table.setdefault(leg.split("-")[0], []).append((time, number))
    return table


def main():
    print("ready", flush=True)
    for airport, departures in timetable(FLIGHTS).items():
        print(airport, departures)


if __name__ == "__main__":
    main()
