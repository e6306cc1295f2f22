import asyncio
import os
import urllib.request
from pathlib import Path

from fastapi import FastAPI

app = FastAPI()
shelves = {"1": asyncio.Lock(), "2": asyncio.Lock()}


@app.get("/")
async def root():
    return "hello"


@app.get("/me")
async def me():
    Path(os.environ["READY"]).touch()
    with urllib.request.urlopen(f"http://127.0.0.1:{os.environ['PORT']}/") as answer:  # HANG me
        return answer.read().decode()


@app.get("/move/{source}/{target}")
async def move(source: str, target: str):
    async with shelves[source]:
        await asyncio.sleep(0.5)
        Path(os.environ["READY"]).touch()
        async with shelves[target]:  # HANG move
            return "done"
