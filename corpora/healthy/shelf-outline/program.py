"""Prints outlines of a library's shelving plan; plans nested too deep for the printer are shown by their first levels only."""
import http.server


class Shelf:
    def __init__(self, name, inner=None):
        self.name = name
        self.inner = inner


def plan(levels):
    shelf = None
    for level in range(levels, 0, -1):
        shelf = Shelf("S%d" % level, shelf)
    return shelf


class Outline:
    def full(self, shelf):
        return shelf.name + (">" + self.full(shelf.inner) if shelf.inner is not None else "")

    def brief(self, shelf, levels=3):
        names = []
        while shelf is not None and len(names) < levels:
            names.append(shelf.name)
            shelf = shelf.inner
        return ">".join(names) + ">..."

    def text(self, shelf):
        try:
            return self.full(shelf)
        except RecursionError:
            return self.brief(shelf)


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.server.outlines.get(self.path.strip("/"), "").encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


def main():
    outline = Outline()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.outlines = {"small": outline.text(plan(5)), "tower": outline.text(plan(50000))}
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
