"""A small ASGI service that makes invoices: the view is synchronous, the rates come from an async client."""
import asyncio
import time

from asgiref.sync import ThreadSensitiveContext, async_to_sync, sync_to_async


class RateClient:
    """Asks for exchange rates; an answer takes its time."""

    def __init__(self, delay):
        self.delay = delay

    async def rate(self, currency):
        await asyncio.sleep(self.delay)
        return {"CHF": 0.95, "SEK": 11.3}[currency]


class InvoiceView:
    def __init__(self, rates):
        self.rates = rates

    def render(self, scope):
        time.sleep(0.6)  # the typesetter
        return "Invoice over %d" % scope["amount"]

    def get(self, scope):
        print("ready", flush=True)
        text = self.render(scope)
        rate = async_to_sync(self.rates.rate)(scope["currency"])  # CULPRIT
        return {"status": 200, "text": text, "total": scope["amount"] * rate}


class Application:
    def __init__(self, view, limit):
        self.view = view
        self.limit = limit

    async def respond(self, scope):
        async with ThreadSensitiveContext():  # CULPRIT
            return await sync_to_async(self.view.get)(scope)

    async def __call__(self, scope):
        try:
            return await asyncio.wait_for(self.respond(scope), self.limit)  # CULPRIT
        except asyncio.TimeoutError:
            return {"status": 504}


async def serve(application):
    requests = [{"currency": "CHF", "amount": 120}, {"currency": "SEK", "amount": 80}]
    for scope in requests:
        print(await application(scope))


def main():
    application = Application(InvoiceView(RateClient(delay=0.05)), limit=0.3)
    asyncio.run(serve(application))


if __name__ == "__main__":
    main()
