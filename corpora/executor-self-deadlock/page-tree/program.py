"""Renders a tree of pages in a thread pool; a page includes its parts."""
import concurrent.futures


class Page:
    def __init__(self, title, parts=()):
        self.title = title
        self.parts = parts


class Renderer:
    def __init__(self, workers):
        self.pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="render")

    def render(self, page):
        parts = [self.pool.submit(self.render, part) for part in page.parts]  # CULPRIT
        return page.title + "".join(part.result() for part in parts)  # CULPRIT

    def site(self, pages):
        return list(self.pool.map(self.render, pages))


def main():
    renderer = Renderer(workers=3)
    pages = [Page("chapter %d" % n, [Page("text", [Page("note")]), Page("picture")]) for n in range(4)]
    print("ready", flush=True)
    for text in renderer.site(pages):
        print(text)


if __name__ == "__main__":
    main()
