"""Text from scanned letters, as a web service."""
import asyncio
import http.client
import os
import socket
import subprocess
import sys
import threading

import uvicorn
from fastapi import APIRouter, FastAPI

HERE = os.path.dirname(os.path.abspath(__file__))
router = APIRouter()


class Converter:
    def __init__(self, script):
        self.script = script

    def convert(self, pages):
        command = [sys.executable, self.script, str(pages)]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout  # CULPRIT


converter = Converter(os.path.join(HERE, "convert.py"))


@router.get("/alive")
async def alive():
    return {"alive": True}


@router.post("/letters/{number}")
async def letter(number: int, pages: int = 1):
    print("ready", flush=True)
    text = converter.convert(pages)  # CULPRIT
    return {"letter": number, "text": text.decode()}


def send(port):
    line = http.client.HTTPConnection("127.0.0.1", port)
    line.request("GET", "/alive")
    line.getresponse().read()
    line.request("POST", "/letters/7?pages=2000")
    print(line.getresponse().read())


def build():
    app = FastAPI()
    app.include_router(router)
    return app


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(build(), log_level="warning"))
    client = threading.Thread(target=send, args=(listener.getsockname()[1],), name="client", daemon=True)
    client.start()
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    asyncio.run(main())
