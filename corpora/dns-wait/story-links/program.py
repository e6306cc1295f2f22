"""Checks the links of a story before it is published: each must answer a HEAD request."""
import sys
from concurrent.futures import ThreadPoolExecutor

import requests
from requests.adapters import HTTPAdapter

import nameserver

LINKS = ["http://archive.story.example/1998/04", "http://photos.story.example/cover.jpg"]


class LinkChecker:
    def __init__(self, server, tries=2):
        host, _, port = server.rpartition(":")
        self.server = host, int(port)
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.mount("http://", HTTPAdapter(max_retries=tries))
        self.pool = ThreadPoolExecutor(2, "links", initializer=nameserver.ask, initargs=self.server)

    def answers(self, link):
        try:
            return self.session.head(link, timeout=(1.0, 2.0)).ok  # CULPRIT
        except requests.RequestException:
            return False

    def dead(self, links):
        for link, fine in zip(links, self.pool.map(self.answers, links)):
            if not fine:
                yield link


def main():
    checker = LinkChecker(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9")
    print("ready", flush=True)
    missing = list(checker.dead(LINKS))
    print("may be published" if not missing else "no answer from: " + ", ".join(missing))


if __name__ == "__main__":
    main()
