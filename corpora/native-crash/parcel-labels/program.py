"""Prints the labels for the parcels of one round; surname and first name are cut at the comma by the C library."""
import ctypes

libc = ctypes.CDLL(None)

WIDTH = 24
PARCELS = [
    ("Ahlberg, Inga", "Kvarngatan 4", 1200),
    ("Benes, Karel", "Na Strani 17", 340),
    ("Costa, Livia", "Rua do Sol 88", 2750),
]


def first_name(name):
    """What stands behind the comma."""
    raw = name.encode("latin-1")
    comma = libc.strchr(raw, ord(","))  # CULPRIT
    length = libc.strlen(comma)  # CULPRIT
    return raw[len(raw) - length + 1:].strip().decode("latin-1")


def label(name, street, grams):
    surname = name.split(",")[0]
    lines = ["%s %s" % (first_name(name), surname), street, "%d g" % grams]
    return [line[:WIDTH].ljust(WIDTH) for line in lines]


def print_round(parcels):
    for name, street, grams in parcels:
        print("\n".join(label(name, street, grams)))


def main():
    print("ready", flush=True)
    print_round(PARCELS)


if __name__ == "__main__":
    main()
