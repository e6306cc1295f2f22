import os
import sys
import time
from pathlib import Path

from jupyter_client import BlockingKernelClient

CELLS = {
    "idle": "print('hello')",
    "lock": """import os, pathlib, threading
l = threading.Lock()
l.acquire(); pathlib.Path(os.environ["READY"]).touch()
l.acquire()
""",
    "input": """import os, pathlib
pathlib.Path(os.environ["READY"]).touch()
name = input("name? ")
""",
}

connection = Path("kernel.json")
while not connection.exists() or not connection.read_text().endswith("}"):
    time.sleep(0.1)
client = BlockingKernelClient(connection_file=str(connection))
client.load_connection_file()
client.start_channels()
client.wait_for_ready(timeout=60)
client.execute("1 + 1", reply=True, timeout=60)
client.execute(CELLS[sys.argv[1]], allow_stdin=True)
if sys.argv[1] == "idle":
    client.get_shell_msg(timeout=60)
    Path(os.environ["READY"]).touch()
sys.stdin.read()
