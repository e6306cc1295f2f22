"""Today's exchange rates for the till: fetched from the branch server, or else yesterday's."""
import json
import sys
import urllib.error
import urllib.request

import nameserver

YESTERDAY = {"EUR": 1.0, "CHF": 0.94, "SEK": 11.4}
SERVER = "http://rates.branch-0417.example/today.json"


def fetch(url, patience=1.5):
    try:
        with urllib.request.urlopen(url, timeout=patience) as reply:  # CULPRIT
            return json.load(reply)
    except (urllib.error.URLError, ValueError) as exc:
        print("no rates from", url, exc, file=sys.stderr)
        return None


def convert(amount, currency, rates):
    return round(amount * rates[currency], 2)


def main():
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9").rpartition(":")
    nameserver.ask(host, int(port))
    print("ready", flush=True)
    rates = fetch(SERVER) or YESTERDAY  # CULPRIT
    for amount in (12.5, 99.0, 240.0):
        print(amount, "EUR is", convert(amount, "CHF", rates), "CHF")


if __name__ == "__main__":
    main()
