"""Sends a long document through a filter process, and reads what comes back."""
import subprocess
import sys

FILTER = """
import sys
for line in sys.stdin:
    sys.stdout.write(line.upper())
    sys.stdout.flush()
"""


class Filter:
    def __init__(self, program):
        self.process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def convert(self, paragraphs):
        for paragraph in paragraphs:
            self.process.stdin.write(paragraph)  # CULPRIT
        self.process.stdin.close()
        text = self.process.stdout.read()
        self.process.wait()
        return text


def document(paragraphs):
    for number in range(paragraphs):
        yield b"paragraph %d: " % number + b"lorem ipsum dolor sit amet " * 40 + b"\n"


def main():
    print("ready", flush=True)
    text = Filter(FILTER).convert(document(1000))
    print(len(text), "bytes")


if __name__ == "__main__":
    main()
