import os
import time
import urllib.request
from pathlib import Path

from celery import Celery

app = Celery("jobs", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])
app.conf.worker_prefetch_multiplier = 1
app.conf.broker_connection_retry_on_startup = True


@app.task
def ping():
    return "pong"


@app.task
def chapter(number):
    return number


@app.task
def book(number):
    time.sleep(1)
    Path(os.environ["READY"]).touch()
    return chapter.delay(number).get(disable_sync_subtasks=False)  # HANG parents


@app.task
def fetch():
    Path(os.environ["READY"]).touch()
    with urllib.request.urlopen(os.environ["SILENT_URL"]) as answer:  # HANG fetch
        return answer.read()
