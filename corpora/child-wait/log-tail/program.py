"""Waits for a line in a log, with a shell tool."""
import signal
import subprocess
import sys
import tempfile

signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
    log.write("service started\n")
    log.flush()
    print("ready", flush=True)
    subprocess.call(["tail", "-f", log.name], stdout=subprocess.DEVNULL)  # CULPRIT
