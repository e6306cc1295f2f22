import os
import time
from pathlib import Path

import requests
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


async def root(request):
    return PlainTextResponse("hello")


async def nap(request):
    Path(os.environ["READY"]).touch()
    time.sleep(3600)  # HANG nap
    return PlainTextResponse("done")


async def fetch(request):
    Path(os.environ["READY"]).touch()
    answer = requests.get(os.environ["SILENT_URL"])  # HANG fetch
    return PlainTextResponse(answer.text)


app = Starlette(routes=[Route("/", root), Route("/nap", nap), Route("/fetch", fetch)])
