"""Reads cities; names are normalised as the registry does."""


def read():
    from registry import CITIES  # CULPRIT

    return {name: size for name, size in [("Basel", 178), ("Bern", 134)] if name not in CITIES}
