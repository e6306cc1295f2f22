import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from django.http import HttpResponse
from django.urls import path

accounts = {1: threading.Lock(), 2: threading.Lock()}


def root(request):
    return HttpResponse("hello")


def transfer(request, giver, taker):
    with accounts[giver]:
        time.sleep(0.5)
        Path(os.environ["READY"]).touch()
        with accounts[taker]:  # HANG transfer
            return HttpResponse("done")


def export(request):
    rows = subprocess.Popen([sys.executable, "-c", "print('row\\n' * 100_000)"], stdout=subprocess.PIPE)
    Path(os.environ["READY"]).touch()
    rows.wait()  # HANG export
    return HttpResponse(rows.stdout.read())


urlpatterns = [
    path("", root),
    path("transfer/<int:giver>/<int:taker>/", transfer),
    path("export/", export),
]
