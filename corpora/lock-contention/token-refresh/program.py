"""Fetches the accounts of a bank for sixty customers; every call carries a token of the session."""
import asyncio


class Session:
    def __init__(self):
        self.lock = asyncio.Lock()
        self.calls = 0

    async def token(self):
        await asyncio.sleep(0.02)
        return "t%d" % self.calls

    async def transfer(self, customer, token):
        await asyncio.sleep(0.06)
        return {"customer": customer, "token": token, "balance": customer * 100}

    async def call(self, customer):
        async with self.lock:  # CULPRIT
            token = await self.token()
            self.calls += 1
            return await self.transfer(customer, token)  # CULPRIT


class Sync:
    def __init__(self, session):
        self.session = session
        self.balances = {}

    async def follow(self, customer):
        while True:
            answer = await self.session.call(customer)
            self.balances[customer] = answer["balance"]

    async def run(self, customers):
        await asyncio.gather(*[self.follow(customer) for customer in range(customers)])


async def main():
    sync = Sync(Session())
    print("ready", flush=True)
    await sync.run(60)


if __name__ == "__main__":
    asyncio.run(main())
