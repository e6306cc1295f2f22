"""Exchange rates, refreshed by a scheduler in the background, for a page that shows them."""
import asyncio
import datetime

from apscheduler.schedulers.background import BackgroundScheduler


class Rates:
    def __init__(self):
        self.fresh = asyncio.Event()
        self.table = {}

    def refresh(self):
        self.table = {"USD": 1.09, "CHF": 0.95}
        self.fresh.set()  # CULPRIT

    async def latest(self):
        await self.fresh.wait()  # CULPRIT
        return dict(self.table)


class Page:
    def __init__(self, rates):
        self.rates = rates

    async def render(self):
        table = await self.rates.latest()
        return "\n".join("%s %.2f" % pair for pair in sorted(table.items()))


async def main():
    rates = Rates()
    scheduler = BackgroundScheduler(timezone=datetime.timezone.utc)
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=0.3)
    scheduler.add_job(rates.refresh, "date", run_date=soon)
    scheduler.start()
    print("ready", flush=True)
    print(await Page(rates).render())


if __name__ == "__main__":
    asyncio.run(main())
