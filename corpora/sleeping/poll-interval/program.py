"""Polls a directory for new files."""
import os
import time

INTERVAL = 5000  # milliseconds


def scan(path):
    return [name for name in os.listdir(path) if name.endswith(".csv")]


print("ready", flush=True)
while not scan("."):
    time.sleep(INTERVAL)  # CULPRIT
