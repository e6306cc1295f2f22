"""Reads a museum's catalogue, an XML file whose entities abbreviate each other, with the standard library."""
import io
import xml.etree.ElementTree as ElementTree


class CatalogueWriter:
    """Writes the entities the way the museum's old system does: each refers to the one before."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, entries):
        self.stream.write("<!DOCTYPE catalogue [\n<!ENTITY n0 'inv. '>\n")
        for number in range(1, entries):
            self.stream.write("<!ENTITY n%d '&n%d;'>\n" % (number, number - 1))
        self.stream.write("]>\n<catalogue><piece id='1'>&n%d;</piece></catalogue>\n" % (entries - 1))


class Catalogue:
    def __init__(self):
        self.pieces = {}

    def read(self, stream):
        for event, element in ElementTree.iterparse(stream):  # CULPRIT
            if element.tag == "piece":
                self.add(element)
        return self

    def add(self, element):
        self.pieces[element.get("id")] = element.text


def main():
    text = io.StringIO()
    CatalogueWriter(text).write(entries=90000)
    stream = io.BytesIO(text.getvalue().encode())
    print("ready", flush=True)
    catalogue = Catalogue().read(stream)
    print("%d pieces" % len(catalogue.pieces))


if __name__ == "__main__":
    main()
