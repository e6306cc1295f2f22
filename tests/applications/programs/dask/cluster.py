import os
import sys
import time
from pathlib import Path

from distributed import Client, LocalCluster
from steps import add_twice, count_up

if __name__ == "__main__":
    cluster = LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None)
    client = Client(cluster)
    if sys.argv[1] == "nested":
        print(client.gather(client.map(add_twice, range(2), pure=False)))
    elif sys.argv[1] == "lock":
        print(client.submit(count_up).result())
    while True:
        print(len(client.scheduler_info()["workers"]))
        Path(os.environ["READY"]).touch()
        time.sleep(1)
