"""Check the consignee lines of parcel labels before they go to the printer."""
import re
import sys

CONSIGNEE = r"^([A-Za-z.]+[ -]?)+$"  # CULPRIT
POSTCODE = r"^[0-9]{4,5}$"

LABELS = [
    ("Miller and Sons", "53111"),
    ("Haus am Markt", "1010"),
    ("Karin Lindqvist-Holm", "41103"),
    ("Vereinigte Walzwerke Niederrhein Lagerhaus Mitte Tor 7", "47051"),
    ("Bakery St. Anne", "6020"),
]


def problems(consignee, postcode):
    found = []
    if not re.match(CONSIGNEE, consignee):  # CULPRIT
        found.append("consignee")
    if not re.match(POSTCODE, postcode):
        found.append("postcode")
    return found


def check(labels, out):
    refused = 0
    for number, (consignee, postcode) in enumerate(labels, 1):
        found = problems(consignee, postcode)
        if found:
            refused += 1
            out.write("label %d: %s\n" % (number, ", ".join(found)))
    return refused


def main():
    print("ready", flush=True)
    refused = check(LABELS, sys.stderr)
    print("%d of %d labels refused" % (refused, len(LABELS)))


if __name__ == "__main__":
    main()
