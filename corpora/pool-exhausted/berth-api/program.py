"""A port's berths as a web service, with the pilots that ask it; bookings are confirmed by a worker with a queue."""
import http.client
import os
import queue
import socket
import tempfile
import threading

import anyio.to_thread
import uvicorn
from fastapi import Depends, FastAPI
from pydantic import BaseModel
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session, sessionmaker

FOLDER = tempfile.mkdtemp()
ENGINE = create_engine("sqlite:///" + os.path.join(FOLDER, "port.db"), pool_size=2, max_overflow=0)
SESSIONS = sessionmaker(bind=ENGINE)
CONFIRMATIONS = queue.Queue()
app = FastAPI()


class Berth(BaseModel):
    name: str
    metres: int


def session():
    opened = SESSIONS()
    try:
        yield opened
    finally:
        opened.close()


@app.get("/berths/{name}", response_model=Berth)
def berth(name: str, database: Session = Depends(session)):  # CULPRIT
    row = database.execute(text("SELECT name, metres FROM berths WHERE name = :name"), {"name": name}).one()  # CULPRIT
    CONFIRMATIONS.put(name)
    return {"name": row.name, "metres": row.metres}


class Confirmations(threading.Thread):
    def __init__(self):
        super().__init__(name="confirmations", daemon=True)
        self.sent = 0

    def run(self):
        while CONFIRMATIONS.get():
            self.sent += 1


class Pilot(threading.Thread):
    def __init__(self, number, port, at_sea):
        super().__init__(name="pilot-%d" % number, daemon=True)
        self.port = port
        self.at_sea = at_sea

    def run(self):
        link = http.client.HTTPConnection("127.0.0.1", self.port)
        self.at_sea.wait()
        for name in ("A1", "A2", "B1") * 20:
            link.request("GET", "/berths/" + name)
            link.getresponse().read()


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        anyio.to_thread.current_default_thread_limiter().total_tokens = 4  # a small machine
        print("ready", flush=True)
        at_sea = threading.Barrier(12)
        for number in range(12):
            Pilot(number, sockets[0].getsockname()[1], at_sea).start()


def main():
    with ENGINE.begin() as connection:
        connection.execute(text("CREATE TABLE berths (name, metres)"))
        connection.execute(text("INSERT INTO berths VALUES ('A1', 120), ('A2', 180), ('B1', 90)"))
    Confirmations().start()
    listener = socket.create_server(("127.0.0.1", 0))
    Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
