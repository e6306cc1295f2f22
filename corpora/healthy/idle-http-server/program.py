"""Serves the files of a folder."""
import functools
import http.server
import tempfile


def main():
    with tempfile.TemporaryDirectory() as folder:
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            print("ready", flush=True)
            server.serve_forever()


if __name__ == "__main__":
    main()
