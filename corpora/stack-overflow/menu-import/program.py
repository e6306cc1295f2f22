"""Imports the menus of a chain of canteens; each canteen sends one JSON document with nested sections."""
import sys

import orjson


class MenuError(Exception):
    pass


def sections(depth, dish):
    """A canteen's document as its export nests it: one list per section below a section."""
    return b"[" * depth + dish + b"]" * depth


INBOX = {
    "harbour": sections(3, b'"fish soup", 4.2'),
    "college": sections(12, b'"noodles", 3.1'),
    "hospital": sections(400000, b'"rice pudding", 2.4'),
}


def read(document):
    try:
        return orjson.loads(document)  # CULPRIT
    except orjson.JSONDecodeError as exc:
        raise MenuError(str(exc))


def dishes(menu):
    while isinstance(menu[0], list):
        menu = menu[0]
    return menu[0]


def main():
    imported = {}
    print("ready", flush=True)
    for canteen, document in INBOX.items():
        try:
            imported[canteen] = dishes(read(document))
        except MenuError as exc:
            print("%s: %s" % (canteen, exc), file=sys.stderr)
    print(imported)


if __name__ == "__main__":
    main()
