"""Serves a press archive with gunicorn: a master and two synchronous workers."""
import os

from gunicorn.app.base import BaseApplication


class Archive:
    def __init__(self):
        self.titles = {"/%d" % number: "Edition %d" % number for number in range(500)}

    def __call__(self, environ, start_response):
        title = self.titles.get(environ["PATH_INFO"])
        start_response("200 OK" if title else "404 Not Found", [("Content-Type", "text/plain")])
        return [(title or "nothing here").encode()]


class Service(BaseApplication):
    def __init__(self, application, options):
        self.application = application
        self.options = options
        super().__init__()

    def load_config(self):
        for name, value in self.options.items():
            self.cfg.set(name, value)

    def load(self):
        return self.application


def announce(server):
    print("ready", flush=True)


def main():
    options = {"bind": "127.0.0.1:0", "workers": 2, "timeout": 2, "loglevel": "error", "when_ready": announce, "worker_tmp_dir": os.environ.get("TMPDIR")}
    Service(Archive(), options).run()


if __name__ == "__main__":
    main()
