"""Moves money between accounts, many transfers at a time."""
import asyncio


class Account:
    def __init__(self, number, balance):
        self.number = number
        self.balance = balance
        self.lock = asyncio.Lock()


class Bank:
    def __init__(self):
        self.accounts = {number: Account(number, 500) for number in (101, 102, 103)}
        self.journal = []

    async def transfer(self, source, target, amount):
        giver, taker = self.accounts[source], self.accounts[target]
        async with giver.lock:  # CULPRIT
            await self.check(giver, amount)
            async with taker.lock:  # CULPRIT
                giver.balance -= amount
                taker.balance += amount
                self.journal.append((source, target, amount))

    async def check(self, account, amount):
        await asyncio.sleep(0.01)
        if account.balance < amount:
            raise ValueError(account.number)


async def main():
    bank = Bank()
    await bank.transfer(101, 103, 20)
    print("ready", flush=True)
    await asyncio.gather(bank.transfer(101, 102, 50), bank.transfer(102, 101, 75), bank.transfer(103, 101, 5))
    print(len(bank.journal), "transfers")


if __name__ == "__main__":
    asyncio.run(main())
