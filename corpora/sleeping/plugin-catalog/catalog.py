"""The catalog: read once, when it is first needed."""
import json
import time
from pathlib import Path

PAUSES = (0.05, 3600)  # CULPRIT


def read(path):
    for pause in PAUSES:
        try:
            return json.loads(path.read_text("utf-8"))
        except OSError:
            time.sleep(pause)  # CULPRIT
    return {}


PRICES = read(Path(__file__).with_name("prices.json"))  # CULPRIT


def price(article):
    return PRICES.get(article, 0)
