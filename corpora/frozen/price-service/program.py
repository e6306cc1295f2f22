"""A price service over HTTP, with a customer of its own that asks now and then whether all is well."""
import threading

import requests
import waitress

PRICES = {"/tea": b"3.20", "/rye": b"2.75"}


class Service:
    def __init__(self):
        self.asked = 0

    def __call__(self, environ, start_response):
        self.asked += 1
        price = PRICES.get(environ["PATH_INFO"])
        start_response("200 OK" if price else "404 Not Found", [("Content-Type", "text/plain")])
        return [price or b"-"]


class Watch(threading.Thread):
    def __init__(self, url):
        super().__init__(name="watch", daemon=True)
        self.url = url
        self.first = threading.Event()

    def run(self):
        with requests.Session() as session:
            session.trust_env = False
            while True:
                session.get(self.url, timeout=5)
                self.first.set()
                threading.Event().wait(0.05)


def announce(watch):
    watch.first.wait()
    print("ready", flush=True)


def main():
    server = waitress.create_server(Service(), host="127.0.0.1", port=0, threads=2)
    watch = Watch("http://127.0.0.1:%s/tea" % server.effective_port)
    watch.start()
    threading.Thread(target=announce, args=(watch,), daemon=True).start()
    server.run()  # CULPRIT


if __name__ == "__main__":
    main()
