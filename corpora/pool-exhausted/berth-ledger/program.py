"""Reads berths from a ledger; each reading keeps its session for a later correction."""
import asyncio
import tempfile

from sqlalchemy import text
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool


class Ledger:
    def __init__(self, engine):
        self.make = async_sessionmaker(engine)
        self.sessions = []

    async def read(self, berth):
        session = self.make()
        await session.execute(text("select 1"))  # CULPRIT
        self.sessions.append(session)
        return berth


async def pulse():
    while True:
        await asyncio.sleep(0.5)


async def main(folder):
    place, size = f"sqlite+aiosqlite:///{folder}/berths.db", {"pool_size": 2, "max_overflow": 0, "pool_timeout": 3600}
    engine = create_async_engine(place, poolclass=AsyncAdaptedQueuePool, **size)
    ledger, beat = Ledger(engine), asyncio.create_task(pulse())
    print("ready", flush=True)
    print(await asyncio.gather(*(ledger.read(berth) for berth in range(4))))
    beat.cancel()


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
