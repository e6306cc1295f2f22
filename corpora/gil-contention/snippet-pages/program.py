"""Renders the code listings of a handbook to HTML."""
import inspect
import tokenize
from concurrent.futures import ThreadPoolExecutor

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer


class Listing:
    def __init__(self, number, code):
        self.number = number
        self.code = code


class Handbook:
    def __init__(self, listings):
        self.listings = listings
        self.pages = {}

    def render(self, listing):
        formatter = HtmlFormatter(linenos="table", anchorlinenos=True, lineanchors="l%d" % listing.number)
        return listing.number, highlight(listing.code, PythonLexer(), formatter)

    def build(self, workers):
        with ThreadPoolExecutor(workers, thread_name_prefix="render") as pool:  # CULPRIT
            print("ready", flush=True)
            for number, page in pool.map(self.render, self.listings):  # CULPRIT
                self.pages[number] = len(page)


def main():
    code = inspect.getsource(tokenize) + inspect.getsource(inspect)
    handbook = Handbook([Listing(number, code) for number in range(4000)])
    handbook.build(workers=4)
    print(sum(handbook.pages.values()))


if __name__ == "__main__":
    main()
