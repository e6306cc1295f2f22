"""Makes an index of scanned letters: how many pictures are on each page."""
import io
from concurrent.futures import ThreadPoolExecutor

from PyPDF2.generic import ArrayObject, DecodedStreamObject
from PyPDF2.pdf import ContentStream

PAGES = [
    b"q 100 0 0 100 0 0 cm BI /W 4 /H 4 /BPC 8 /CS /G ID 0123456789abcdef EI Q",
    b"BT /F1 12 Tf (Dear Ms Holm) Tj ET",
    b"q 100 0 0 100 0 0 cm BI /W 4 /H 4 /BPC 8 /CS /G ID 0123456789ab",
]


class Page:
    def __init__(self, content):
        self.stream = DecodedStreamObject()
        self.stream.setData(content)

    def operations(self):
        return ContentStream(ArrayObject([self.stream]), None).operations  # CULPRIT

    def pictures(self):
        return sum(operator == b"INLINE IMAGE" for _, operator in self.operations())


class Index:
    def __init__(self):
        self.rows = []

    def add(self, name, contents):
        counts = [Page(content).pictures() for content in contents]
        self.rows.append((name, counts))
        return name

    def text(self):
        out = io.StringIO()
        for name, counts in self.rows:
            print(name, *counts, file=out)
        return out.getvalue()


def main():
    index = Index()
    index.add("letter-001", PAGES[:2])
    with ThreadPoolExecutor(1, thread_name_prefix="index") as pool:
        print("ready", flush=True)
        pool.submit(index.add, "letter-002", PAGES).result()
    print(index.text())


if __name__ == "__main__":
    main()
